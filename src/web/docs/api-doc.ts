import { conversationOperations } from '../../api-docs/conversation-operations.ts'
import type { ApiOperation, Schema } from '../../api-docs/operation.ts'
import { apiOperations } from '../../api-docs/operations.ts'
import { keyPrefix } from '../../domain/keys.ts'
import type { Doc } from './doc.ts'

const conversationsPath = '/docs/api-conversations'

/**
 * The API reference, generated from the same table as `/openapi.json`. Conversations have a page of their own, because
 * one page would be too long (contract 20.6).
 */
export function apiDocs({ baseUrl }: { readonly baseUrl: string }): readonly Doc[] {
  const intro = [
    `The base URL is \`${baseUrl}\`. Paths that do not start with \`/v1\` are at the root of the same host. Send \`Authorization: Bearer ${keyPrefix}…\`, and identify your program in \`User-Agent\`. [Set up your client](/connect).`,
    'The service reads the fields listed below. It passes all other fields to the provider unchanged, and returns any additional fields in the provider’s response.',
    'Every response includes `X-Request-Id`. With a key, it also includes your account’s limits and quota (`X-RateLimit-*`, `X-Quota-*`). If a model answered, it includes the backend (`X-Svc-Router-Upstream`) and the number of backends that failed first (`X-Svc-Router-Retry-Count`). [Errors](/docs/errors) lists every error response.',
    `[Conversations](${conversationsPath}) have a page of their own. The same reference is available as an [OpenAPI document](/openapi.json).`,
  ]
  const sections = (operations: readonly ApiOperation[]): readonly string[] =>
    operations.flatMap((operation) => section(operation, baseUrl))
  const others = apiOperations.filter((operation) => !conversationOperations.includes(operation))
  return [
    {
      path: '/docs/api',
      title: 'API reference',
      summary: 'Every endpoint with its fields, and the OpenAPI document.',
      markdown: [...intro, ...sections(others)].join('\n\n'),
    },
    {
      path: conversationsPath,
      title: 'API reference: conversations',
      summary: 'The endpoints for stored conversations.',
      markdown: ['[All other endpoints](/docs/api).', ...sections(conversationOperations)].join('\n\n'),
    },
  ]
}

function section(operation: ApiOperation, baseUrl: string): readonly string[] {
  const { method, path, summary, description, access, parameters = [], body, answer } = operation
  const { origin } = new URL(baseUrl)
  const fields = [
    ...parameters.map(({ name, description: text }) => `| \`${name}\` | ${text} |`),
    ...Object.entries(body?.fields ?? {}).map(([name, schema]) => row(name, schema, body?.required ?? [])),
  ]
  const sample =
    body === undefined
      ? []
      : [
          '```',
          `curl -sS ${path.startsWith('/v1/') ? baseUrl + path.slice(3) : origin + path} -H "authorization: Bearer $SVC_ROUTER_API_KEY" \\`,
          `  -H 'content-type: application/json' -d '${JSON.stringify(body.example)}'`,
          '```',
        ]
  return [
    `## ${summary}`,
    `\`${method.toUpperCase()} ${path}\`${access === 'public' ? ', without a key' : ''}`,
    `${description} Returns ${answer.charAt(0).toLowerCase()}${answer.slice(1)}`,
    ...(fields.length === 0 ? [] : [['| Field | Description |', '| --- | --- |', ...fields].join('\n')]),
    ...(sample.length === 0 ? [] : [sample.join('\n')]),
  ]
}

function row(name: string, { description = '' }: Schema, required: readonly string[]): string {
  return `| \`${name}\`${required.includes(name) ? '' : ' (optional)'} | ${description} |`
}
