import { STATUS_CODES } from 'node:http'
import { errorCodes, errorMessage } from '../../domain/error-message.ts'
import { errorCatalog, type ErrorCode, ServiceError } from '../../domain/errors.ts'
import type { Links } from '../../domain/links.ts'
import { clientWords, socketCodes, streamCode } from './client-advice.ts'
import type { Doc } from './doc.ts'
import { errorHelp } from './error-help.ts'

/** An error response as a client receives it, produced by the same code as real ones. */
export interface WrittenError {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** JSON on one line. */
  readonly body: string
}

/** What the error pages are built from. */
export interface ErrorDocsDeps {
  readonly links: Links
  readonly writeRefusal: (error: ServiceError) => WrittenError
}

const sources = {
  client: 'your request or your account',
  gateway: 'this service',
  provider: 'a provider',
  edge: 'the `User-Agent` of your request',
} as const

/** Errors that are responses, or end a stream that has begun. */
const endsStreams: readonly ErrorCode[] = [
  'content_rejected',
  'answer_interrupted',
  'upstream_timeout',
  'restarting',
  'internal_error',
  'server_is_overloaded',
  'server_busy',
  'upstream_credentials_rejected',
  'upstream_misconfigured',
  'context_length_exceeded',
  'store_unavailable',
  'record_unavailable',
  'auth_unavailable',
  'key_revoked',
  'key_inactive',
]

/** One page for each error code, followed by the page that lists them all (contract 4.8). */
export function errorDocs(deps: ErrorDocsDeps): readonly Doc[] {
  return [...errorCodes.map((code) => errorDoc(code, deps)), errorList(deps)]
}

/** The example error shown on the page of a code. */
export function exampleOf(code: ErrorCode): ServiceError {
  return new ServiceError(code, errorHelp[code].example)
}

function errorDoc(code: ErrorCode, { links, writeRefusal }: ErrorDocsDeps): Doc {
  const error = exampleOf(code)
  const { why, fix, at } = errorHelp[code]
  const { status, type, source, retryable } = { ...errorCatalog[code], status: error.status }
  const written = writeRefusal(error)
  const markdown = [
    `> ${errorMessage(error, links)}`,
    '## Why',
    why,
    '## How to fix it',
    fix.map((step, index) => `${index + 1}. ${step}`).join('\n'),
    ...(at === undefined ? [] : [`[${at.name}](${at.path})`]),
    '## The response',
    `${code === streamCode ? 'Type' : `Status ${status}, type`} \`${type}\`. The cause is ${sources[source]}. ${
      retryable ? 'The same request may succeed later.' : failsUntil(code)
    } ${countedSentence(code, status)}`,
    ...asSent(code, written),
    ...clientTable(error),
  ]
  // Nobody sees its status: it is the last event of a stream.
  const summary = code === streamCode ? firstSentence(why) : `${status}: ${firstSentence(why)}`
  return { path: `/docs/errors/${code}`, title: code, summary, markdown: markdown.join('\n\n') }
}

/** The error as the API sends it. */
function asSent(code: ErrorCode, written: WrittenError): readonly string[] {
  const { status, headers, body } = written
  if (socketCodes.includes(code)) return asMessage(written)
  if (code === streamCode)
    return [
      'It is the last event of a stream that began with status 200. In Chat Completions, its data is:',
      fence(JSON.stringify(JSON.parse(body), null, 2)),
    ]
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`
  return [
    ...(endsStreams.includes(code)
      ? [
          'If a stream has already begun, the error is its last event, with the same code and message. Otherwise, it is this response:',
        ]
      : []),
    fence([head, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\n')),
    fence(JSON.stringify(JSON.parse(body), null, 2)),
  ]
}

/** The error as a WebSocket sends it (contract 14.3). */
function asMessage({ status, headers, body }: WrittenError): readonly string[] {
  const members = JSON.parse(body) as object
  const named = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
  return [
    'It is a message on the WebSocket:',
    fence(JSON.stringify({ type: 'error', status, ...members, headers: named }, null, 2)),
  ]
}

/** What clients with the configurations in docs/clients.md do. */
function clientTable(error: ServiceError): readonly string[] {
  const all = 'See [all errors](/docs/errors).'
  const clients = clientWords(error).map(([client, words]) => `| ${client} | ${words} |`)
  if (clients.length === 0)
    return [`Only programs that use [WebSockets](/docs/clients#websockets) get this error. ${all}`]
  return [
    '## What your client shows',
    'With the configurations on the page [Clients](/docs/clients):',
    ['| Client | What it does |', '| --- | --- |', ...clients].join('\n'),
    `Clients of the Anthropic API receive the same fields in the format of that API. ${all}`,
  ]
}

function errorList({ links }: ErrorDocsDeps): Doc {
  const row = (code: ErrorCode): string =>
    `- [\`${code}\`](/docs/errors/${code}): ${firstSentence(errorHelp[code].why)}`
  const responses = errorCodes.filter((code) => code !== streamCode)
  const byStatus = Map.groupBy(responses, (code) => exampleOf(code).status)
  const groups = [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, codes]) => `## ${status} ${STATUS_CODES[status] ?? ''}\n\n${codes.map(row).join('\n')}`)
  const markdown = [
    'Find the code of your error below. Every error has the same fields: `message` says what happened and what to do, and often contains a link to the page that helps. `code` identifies the error, and each code has a page here.',
    '`retryable` and the header `X-Should-Retry` say whether to retry, and `Retry-After` says how long to wait. To look up a request that we accepted, call `GET /v1/requests/{id}` with the ID from `X-Request-Id`, or open `/activity/{id}` in the web app.',
    ...groups,
    `## The last event of a stream\n\n${row(streamCode)}`,
    `See the [status page](${new URL(links.statusUrl).pathname}) for current problems.`,
  ]
  return {
    path: '/docs/errors',
    title: 'Errors',
    summary: 'What each error code means, why it happens, and how to fix it.',
    markdown: markdown.join('\n\n'),
  }
}

/** When the same request succeeds after an error that is not retryable. */
function failsUntil(code: ErrorCode): string {
  if (code === 'insufficient_quota') return 'The same request fails until the quota resets or you upgrade.'
  if (code === 'budget_exceeded') return 'The same request fails until more of the budget is available.'
  if (code === 'answer_interrupted') return 'A retry with the same `Idempotency-Key` fails again.'
  return 'The same request fails until you fix the cause.'
}

function countedSentence(code: ErrorCode, status: number): string {
  const isRejected = status < 500 ? code !== 'content_rejected' : code === 'load_shed'
  if (isRejected) return 'A rejected request does not count toward your monthly quota.'
  if (code === 'answer_interrupted')
    return 'The original request counts toward your monthly quota if part of its answer had been generated. Its retries do not count.'
  if (code === 'upstream_broken')
    return 'The failed request counts toward your monthly quota, because part of the answer had been generated.'
  if (status === 504)
    return 'The failed request counts toward your monthly quota only if part of the answer had already been sent, or if your client set the deadline and a provider had been asked.'
  return 'The failed request does not count toward your monthly quota, unless part of the answer had already been sent.'
}

/** The first sentence of a text. */
export function firstSentence(text: string): string {
  return /^.*?[.](?= |$)/.exec(text)?.[0] ?? text
}

function fence(text: string): string {
  return `\`\`\`\n${text}\n\`\`\``
}
