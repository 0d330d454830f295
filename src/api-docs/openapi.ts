import { errorCodes } from '../domain/error-message.ts'
import { errorCatalog, type ErrorCode } from '../domain/errors.ts'
import { keyPrefix } from '../domain/keys.ts'
import type { Links } from '../domain/links.ts'
import { apiAnswers } from './answer-schemas.ts'
import type { ApiOperation, Schema } from './operation.ts'
import { apiOperations } from './operations.ts'
import { webhookEvents } from './webhook-events.ts'

export interface OpenApiOptions {
  /** With its `/v1`, which the paths of the document have, too. */
  readonly baseUrl: string
  readonly links: Links
  readonly version: string
}

/** Codes that occur only on a WebSocket or for an upgrade request. */
const socketCodes: readonly ErrorCode[] = [
  'upgrade_required',
  'websocket_connection_limit_reached',
  'websocket_queue_full',
]
const publicCodes: readonly ErrorCode[] = [
  '1010',
  'method_not_allowed',
  'not_found',
  'headers_too_large',
  'internal_error',
]
/** Types of errors that only requests to a model can get. */
const modelTypes: readonly string[] = ['permission_error', 'insufficient_quota']
/** Errors that any request with a limited key can get. */
const limitCodes: readonly ErrorCode[] = ['key_address_not_allowed', 'key_profile_not_allowed']

const integer = (description: string): object => ({ description, schema: { type: 'integer' } })
const text = (description: string): object => ({ description, schema: { type: 'string' } })

/** Headers by name, with what each says (contract 4.3, 5.5, 5.6). */
const headers: Readonly<Record<string, object>> = {
  'X-Request-Id': text('The ID of the request.'),
  'X-RateLimit-Limit': integer(
    'Requests allowed in any 60 seconds by the plan, or by the key’s own limit if fewer of those remain.',
  ),
  'X-RateLimit-Remaining': integer('Requests remaining under that limit.'),
  'X-RateLimit-Reset': integer('When one more request becomes possible, in Unix seconds.'),
  'X-Quota-Limit': integer('Requests that the plan allows per month.'),
  'X-Quota-Used': integer('Requests used this month.'),
  'X-Quota-Remaining': integer('Requests remaining this month.'),
  'X-Quota-Period': { description: 'A calendar month, UTC.', schema: { const: 'month' } },
  'X-Quota-Reset': integer('When the next month begins, in Unix seconds.'),
  'X-Svc-Router-Upstream': text('The backend that answered.'),
  'X-Svc-Router-Model': text('The model requested from that backend.'),
  'X-Svc-Router-Cost': text('The cost in US dollars of an answer that is not streamed, in profiles that report it.'),
  'X-Svc-Router-Max-Output-Tokens': integer('The output limit, in tokens, if budgets set or lowered it.'),
  'X-Svc-Router-Retry-Count': integer('The number of backends that failed before this answer.'),
  'X-Should-Retry': { description: 'Whether the same request can succeed later.', schema: { enum: ['true', 'false'] } },
  'Retry-After': { description: 'How long to wait, in seconds.', schema: { type: 'integer', minimum: 1, maximum: 60 } },
}
const usageNames = Object.keys(headers).filter((name) => /^X-(?:RateLimit|Quota)-/.test(name))
const reliabilityNames = [
  'X-Svc-Router-Upstream',
  'X-Svc-Router-Model',
  'X-Svc-Router-Cost',
  'X-Svc-Router-Max-Output-Tokens',
  'X-Svc-Router-Retry-Count',
]

/** The OpenAPI 3.1 document, generated from the tables of operations and errors. */
export function openApiDocument({ baseUrl, links, version }: OpenApiOptions): object {
  const { origin } = new URL(baseUrl)
  // The operations are written for `/v1`; the service may be reached below another path.
  const pathOf = (path: string): string => (path.startsWith('/v1/') ? new URL(baseUrl).pathname + path.slice(3) : path)
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of apiOperations) {
    const item = (paths[pathOf(operation.path)] ??= {})
    item[operation.method] = operationObject(operation)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc-router',
      version,
      description:
        'Routes requests to many models through named profiles. Fields that are not listed here are sent to the provider unchanged.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    externalDocs: { url: links.docsUrl },
    servers: [{ url: origin }],
    paths,
    webhooks: webhookEvents,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: `An API key, which starts with ${keyPrefix}. Get one: ${links.accountSetupUrl}`,
        },
      },
      headers,
      responses: Object.fromEntries(
        statusesOf(errorCodes).map((status) => [`Error${status}`, errorResponse(status, links)]),
      ),
      schemas: { Error: errorSchema },
    },
  }
}

function operationObject(operation: ApiOperation): object {
  const { id, summary, description, access, parameters, body, answer, streams, errorCodes: kind } = operation
  const isModel = kind === 'model'
  const names = ['X-Request-Id', ...(access === 'key' ? usageNames : []), ...(isModel ? reliabilityNames : [])]
  return {
    operationId: id,
    summary,
    description,
    security: access === 'key' ? [{ key: [] }] : [],
    ...(parameters && {
      parameters: parameters.map((one) => ({ ...one, ...(one.in === 'path' && { required: true }) })),
    }),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: objectSchema(body.fields, body.required), example: body.example } },
      },
    }),
    responses: {
      200: {
        description: answer,
        headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
        ...(operation.method !== 'head' && {
          content: {
            'application/json': { schema: apiAnswers[id] ?? { type: 'object' } },
            ...(streams === true && { 'text/event-stream': { schema: { type: 'string' } } }),
          },
        }),
      },
      ...Object.fromEntries(
        statusesOf(codesOf(operation)).map((status) => [status, { $ref: `#/components/responses/Error${status}` }]),
      ),
    },
  }
}

/** The errors that an operation can return. */
function codesOf({ errorCodes: kind }: Pick<ApiOperation, 'errorCodes'>): readonly ErrorCode[] {
  if (kind === 'public') return publicCodes
  const known = errorCodes.filter((code) => !socketCodes.includes(code))
  return kind === 'model'
    ? known
    : known.filter(
        (code) =>
          limitCodes.includes(code) ||
          (!modelTypes.includes(errorCatalog[code].type) && errorCatalog[code].source !== 'provider'),
      )
}

function statusesOf(codes: readonly ErrorCode[]): readonly number[] {
  return [...new Set(codes.map((code) => errorCatalog[code].status))].toSorted((a, b) => a - b)
}

function errorResponse(status: number, { docsUrl }: Links): object {
  const codes = errorCodes.filter((code) => errorCatalog[code].status === status)
  const names = [
    'X-Request-Id',
    'X-Should-Retry',
    ...(codes.some((code) => errorCatalog[code].retryable) ? ['Retry-After'] : []),
  ]
  return {
    description: codes.map((code) => `[\`${code}\`](${docsUrl}/errors/${code})`).join(', '),
    headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  }
}

/** The types of errors under `/v1/messages`, as Anthropic's clients expect them. */
const messagesTypes = [
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'request_too_large',
  'rate_limit_error',
  'timeout_error',
  'api_error',
  'overloaded_error',
]

const errorSchema = objectSchema(
  {
    error: objectSchema(
      {
        message: {
          type: 'string',
          maxLength: 240,
          description: 'What happened and what to do, often with a link that helps.',
        },
        type: {
          type: 'string',
          enum: [...new Set([...errorCodes.map((code) => errorCatalog[code].type), ...messagesTypes])],
          description: 'Under /v1/messages, Anthropic’s error types.',
        },
        param: { type: ['string', 'null'], description: 'The field that caused the error.' },
        code: { type: 'string', enum: errorCodes },
        source: { enum: ['client', 'gateway', 'provider', 'edge'], description: 'What caused the error.' },
        retryable: { type: 'boolean' },
        request_id: { type: 'string' },
      },
      ['message', 'type', 'param', 'code', 'source', 'retryable', 'request_id'],
    ),
  },
  ['error'],
)

function objectSchema(properties: Readonly<Record<string, Schema>>, required: readonly string[]): Schema {
  return { type: 'object', properties, required }
}
