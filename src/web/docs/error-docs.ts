import { STATUS_CODES } from 'node:http'
import { errorCodes, errorMessage } from '../../domain/error-message.ts'
import { errorCatalog, type ErrorCode, ServiceError } from '../../domain/errors.ts'
import type { Links } from '../../domain/links.ts'
import { clientWords } from './client-advice.ts'
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
  const clients = clientWords(status).map(([client, words]) => `| ${client} | ${words} |`)
  const markdown = [
    `> ${errorMessage(error, links)}`,
    '## Why',
    why,
    '## How to fix it',
    fix.map((step, index) => `${index + 1}. ${step}`).join('\n'),
    ...(at === undefined ? [] : [`[${at.name}](${at.path})`]),
    '## The response',
    `Status ${status}, type \`${type}\`. The cause is ${sources[source]}. ${
      retryable ? 'The same request may succeed later.' : failsUntil(code)
    } ${countedSentence(code, status)}`,
    fence(
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\n${written.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}`,
    ),
    fence(JSON.stringify(JSON.parse(written.body), null, 2)),
    '## What your client shows',
    ['| Client | What it does |', '| --- | --- |', ...clients].join('\n'),
    'Clients of the Anthropic API receive the same fields in the format of that API. See [all errors](/docs/errors).',
  ]
  const summary = `${status}: ${firstSentence(why)}`
  return { path: `/docs/errors/${code}`, title: code, summary, markdown: markdown.join('\n\n') }
}

function errorList({ links }: ErrorDocsDeps): Doc {
  const byStatus = Map.groupBy(errorCodes, (code) => exampleOf(code).status)
  const groups = [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, codes]) => {
      const rows = codes.map((code) => `- [\`${code}\`](/docs/errors/${code}): ${firstSentence(errorHelp[code].why)}`)
      return `## ${status} ${STATUS_CODES[status] ?? ''}\n\n${rows.join('\n')}`
    })
  const markdown = [
    'Find the code of your error below. Every error has the same shape: `message` says what happened and what to do, and often contains a link to the page that helps. `code` identifies the error, and each code has a page here.',
    '`retryable` and the header `X-Should-Retry` say whether to retry, and `Retry-After` says how long to wait. To look up a request that we accepted, call `GET /v1/requests/{id}` with the ID from `X-Request-Id`, or open `/activity/{id}` in the web app.',
    ...groups,
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
  if (status < 500) return 'A rejected request does not count toward your monthly quota.'
  if (code === 'upstream_broken' || code === 'answer_interrupted')
    return 'It counts toward your monthly quota, because part of the answer had been generated.'
  if (status === 504)
    return 'It counts toward your monthly quota only if part of the answer had already been sent, or if your client set the time limit.'
  return 'It does not count toward your monthly quota, unless part of the answer had already been sent.'
}

/** The first sentence of a text. */
export function firstSentence(text: string): string {
  return /^.*?[.](?= |$)/.exec(text)?.[0] ?? text
}

function fence(text: string): string {
  return `\`\`\`\n${text}\n\`\`\``
}
