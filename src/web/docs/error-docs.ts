import { STATUS_CODES } from 'node:http'
import { errorCodes, errorMessage } from '../../domain/error-text.ts'
import { errorCatalog, type ErrorCode, ServiceError } from '../../domain/errors.ts'
import type { Links } from '../../domain/links.ts'
import { clientWords } from './client-words.ts'
import type { Doc } from './doc.ts'
import { errorHelp } from './error-help.ts'

/** A refusal as a client receives it, written by the code that writes real ones. */
export interface WrittenRefusal {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** JSON in one line. */
  readonly body: string
}

/** What the pages of errors are made of. */
export interface ErrorDocsParts {
  readonly links: Links
  readonly writeRefusal: (error: ServiceError) => WrittenRefusal
}

const sources = {
  client: 'your request',
  gateway: 'this service',
  provider: 'a provider',
  edge: 'the gate before the API',
} as const

/** A page for every code of the table of errors, and behind them the page that lists them. */
export function errorDocs(parts: ErrorDocsParts): readonly Doc[] {
  return [...errorCodes.map((code) => errorDoc(code, parts)), errorList(parts)]
}

/** An error as the example of its page has it. */
export function exampleOf(code: ErrorCode): ServiceError {
  return new ServiceError(code, errorHelp[code].example)
}

function errorDoc(code: ErrorCode, { links, writeRefusal }: ErrorDocsParts): Doc {
  const error = exampleOf(code)
  const { why, mend, at } = errorHelp[code]
  const { status, type, source, retryable } = { ...errorCatalog[code], status: error.status }
  const written = writeRefusal(error)
  const clients = clientWords(status).map(([client, words]) => `| ${client} | ${words} |`)
  const markdown = [
    `> ${errorMessage(error, links)}`,
    '## Why',
    why,
    '## How to mend it',
    mend.map((step, index) => `${index + 1}. ${step}`).join('\n'),
    ...(at === undefined ? [] : [`[${at.name}](${at.path})`]),
    '## The answer',
    `Status ${status}, type \`${type}\`. The fault is with ${sources[source]}. ${
      retryable ? 'The same request may succeed later.' : 'The same request will be refused again.'
    } ${countedSentence(status)}`,
    fence(
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\n${written.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}`,
    ),
    fence(JSON.stringify(JSON.parse(written.body), null, 2)),
    '## What your client shows',
    ['| Client | What it does |', '| --- | --- |', ...clients].join('\n'),
    'Clients of Anthropic’s API get the same fields in the shape that they read. [All errors](/docs/errors)',
  ]
  const summary = `${status}: ${firstSentence(why)}`
  return { path: `/docs/errors/${code}`, title: code, summary, markdown: markdown.join('\n\n') }
}

function errorList({ links }: ErrorDocsParts): Doc {
  const statuses = [...new Set(errorCodes.map((code) => exampleOf(code).status))].toSorted((a, b) => a - b)
  const groups = statuses.map((status) => {
    const codes = errorCodes.filter((code) => exampleOf(code).status === status)
    const rows = codes.map((code) => `- [\`${code}\`](/docs/errors/${code}): ${firstSentence(errorHelp[code].why)}`)
    return `## ${status} ${STATUS_CODES[status] ?? ''}\n\n${rows.join('\n')}`
  })
  const markdown = [
    'Every error has the same shape. `message` says what happened and what to do, and carries the one link that helps; `code` names it, and each code has a page here.',
    'Whether it is worth trying again stands in `retryable` and in the header `X-Should-Retry`, and how long to wait in `Retry-After`. The id in `X-Request-Id` finds a request again.',
    ...groups,
    `The state of the service is on the [status page](${new URL(links.statusUrl).pathname}).`,
  ]
  return {
    path: '/docs/errors',
    title: 'Errors',
    summary: 'Every code: what happened, why, and how to mend it.',
    markdown: markdown.join('\n\n'),
  }
}

function countedSentence(status: number): string {
  if (status < 500) return 'Nothing is taken from the month.'
  return 'Nothing is taken from the month, unless a part of the answer had arrived already.'
}

/** The first sentence of a text. */
export function firstSentence(text: string): string {
  return /^.*?[.](?= |$)/.exec(text)?.[0] ?? text
}

function fence(text: string): string {
  return `\`\`\`\n${text}\n\`\`\``
}
