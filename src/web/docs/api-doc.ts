import type { ApiOperation, Schema } from '../../domain/api-operation.ts'
import { apiOperations } from '../../domain/api-operations.ts'
import { keyPrefix } from '../../domain/keys.ts'
import type { Doc } from './doc.ts'

/** The API reference, made of the same table as `/openapi.json`. */
export function apiDoc({ baseUrl }: { readonly baseUrl: string }): Doc {
  const intro = [
    `Everything is below \`${baseUrl}\`, but for what is shown with a path of its own. Send \`Authorization: Bearer ${keyPrefix}…\`, and say what your program is in \`User-Agent\`. [How each client is set up](/connect).`,
    'The fields below are those that the service reads. All others reach the provider as they are, and what the provider answers besides reaches you.',
    'Each answer carries `X-Request-Id`, the counters of the account (`X-RateLimit-*`, `X-Quota-*`), the backend that answered (`X-Svc-Router-Upstream`) and how many failed before it (`X-Svc-Router-Retry-Count`). What can go wrong stands among the [errors](/docs/errors).',
    '[OpenAPI document](/openapi.json)',
  ]
  return {
    path: '/docs/api',
    title: 'API reference',
    summary: 'Every endpoint with its fields, and the OpenAPI document.',
    markdown: [...intro, ...apiOperations.flatMap((operation) => section(operation, baseUrl))].join('\n\n'),
  }
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
    `${description} A 200 holds: ${answer}`,
    ...(fields.length === 0 ? [] : [['| Field | What it is |', '| --- | --- |', ...fields].join('\n')]),
    ...(sample.length === 0 ? [] : [sample.join('\n')]),
  ]
}

function row(name: string, { description = '' }: Schema, required: readonly string[]): string {
  return `| \`${name}\`${required.includes(name) ? '' : ' (optional)'} | ${description} |`
}
