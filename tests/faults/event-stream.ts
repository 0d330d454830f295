import { expect, vi } from 'vitest'
import type { RequestRecord } from '../../src/domain/requests.ts'
import type { Service } from '../service.ts'

/** One event of a stream as a client reads it. */
export interface StreamEvent {
  readonly event: string | undefined
  readonly data: string
}

export interface StreamJson {
  readonly [name: string]: unknown
  readonly type?: string
  readonly sequence_number?: number
  readonly response?: { readonly id: string; readonly status: string }
  readonly error?: { readonly code: string; readonly message: string; readonly type: string } | null
  readonly choices?: readonly {
    readonly index: number
    readonly finish_reason: string | null
    readonly delta: { content?: string }
  }[]
}

/** The events of a stream without comments. Every block must be complete. */
export function eventsOf(text: string): StreamEvent[] {
  expect(text.endsWith('\n\n'), 'a stream ends after a complete event').toBe(true)
  const events: StreamEvent[] = []
  for (const block of text.split('\n\n')) {
    const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith(':'))
    if (lines.length === 0) continue
    const event = lines.find((line) => line.startsWith('event: '))?.slice(7)
    events.push({
      event,
      data: lines
        .filter((line) => line.startsWith('data: '))
        .map((line) => line.slice(6))
        .join('\n'),
    })
  }
  return events
}

/** The JSON of all events before `[DONE]`, which must occur once, at the end. */
export function jsonUpToDone(text: string): StreamJson[] {
  const events = eventsOf(text)
  expect(events.filter(({ data }) => data === '[DONE]')).toHaveLength(1)
  expect(events.at(-1)?.data).toBe('[DONE]')
  return events.slice(0, -1).map(({ data }) => JSON.parse(data) as StreamJson)
}

/** Asserts a broken chat stream: it ends with one error and `[DONE]`, and no choice has finished (contract 10.2). */
export function expectBrokenChat(text: string, code = 'upstream_broken'): void {
  const events = jsonUpToDone(text)
  expect(events.filter(({ error }) => error != null)).toHaveLength(1)
  expect(events.at(-1)?.error).toMatchObject({
    code,
    type: expect.any(String) as string,
    message: expect.any(String) as string,
  })
  expect(events.flatMap(({ choices = [] }) => choices).some(({ finish_reason: reason }) => reason != null)).toBe(false)
}

/** Asserts a complete chat stream, without an error and with a finished choice; returns its text. */
export function expectWholeChat(text: string): string {
  const events = jsonUpToDone(text)
  expect(events.some(({ error }) => error != null)).toBe(false)
  const choices = events.flatMap((event) => event.choices ?? [])
  expect(choices.filter(({ finish_reason: reason }) => reason != null)).toHaveLength(1)
  return choices.map(({ delta }) => delta.content ?? '').join('')
}

/**
 * Asserts the order of a Responses stream: one `created` first, increasing numbers, one ID, one terminal event at the
 * end.
 */
function expectOrder(events: readonly StreamJson[], terminal: string): void {
  expect(events[0]?.type).toBe('response.created')
  expect(events.filter(({ type }) => type === 'response.created')).toHaveLength(1)
  const numbers = events.map(({ sequence_number: number }) => number)
  expect(
    numbers.every((number, index) => typeof number === 'number' && (index === 0 || number > numbers[index - 1]!)),
    `rising: ${numbers.join(' ')}`,
  ).toBe(true)
  expect(new Set(events.flatMap(({ response }) => (response === undefined ? [] : [response.id]))).size).toBe(1)
  const ends = events.filter(({ type }) => /^response\.(completed|failed|incomplete)$/.test(type ?? ''))
  expect(ends.map(({ type }) => type)).toEqual([terminal])
  expect(events.at(-1)?.type).toBe(terminal)
}

/** Asserts a broken Responses stream: `error` in both forms, then `response.failed`, then `[DONE]` (contract 10.3). */
export function expectBrokenResponses(text: string, code = 'upstream_broken'): void {
  const events = jsonUpToDone(text)
  expectOrder(events, 'response.failed')
  expect(events.filter(({ type }) => type === 'error')).toHaveLength(1)
  const error = events.at(-2)
  expect(error).toMatchObject({
    type: 'error',
    code,
    message: expect.any(String) as string,
    error: { code, message: expect.any(String) as string },
  })
  expect(events.at(-1)?.response).toMatchObject({ status: 'failed', error: { code } })
  const names = eventsOf(text).map(({ event }) => event)
  expect(names.slice(-3)).toEqual(['error', 'response.failed', undefined])
}

/** Asserts a complete Responses stream; returns its text. */
export function expectWholeResponses(text: string): string {
  const events = jsonUpToDone(text)
  expectOrder(events, 'response.completed')
  expect(events.some(({ type }) => type === 'error')).toBe(false)
  return events
    .flatMap((event) => (event.type === 'response.output_text.delta' ? [String(event['delta'])] : []))
    .join('')
}

/** Asserts a complete Messages stream, which ends with one `message_stop` and has no error; returns its text. */
export function expectWholeMessages(text: string): string {
  const events = eventsOf(text)
  const names = events.map(({ event }) => event)
  expect(names.at(0)).toBe('message_start')
  expect(names.filter((name) => name === 'message_stop' || name === 'error')).toEqual(['message_stop'])
  expect(names.at(-1)).toBe('message_stop')
  return events
    .filter(({ event }) => event === 'content_block_delta')
    .map(({ data }) => (JSON.parse(data) as { readonly delta: { readonly text?: string } }).delta.text ?? '')
    .join('')
}

/** Asserts a broken Messages stream: it ends with one `error`, and nothing says that it is complete. */
export function expectBrokenMessages(text: string, code = 'upstream_broken'): void {
  const events = eventsOf(text)
  expect(events.map(({ event }) => event).filter((name) => name === 'error')).toHaveLength(1)
  const last = events.at(-1)!
  expect(last.event).toBe('error')
  expect(JSON.parse(last.data)).toMatchObject({
    type: 'error',
    error: { type: 'api_error', code, message: expect.any(String) as string },
  })
  expect(text).not.toMatch(/message_stop|\[DONE\]/)
}

/** A request's record, once its end is on disk. */
export async function recordOf(service: Service, id: string | null): Promise<RequestRecord> {
  return ended(() => service.store.findRequest(id ?? ''))
}

/** The record of the last request, once its end is on disk. */
export async function lastRecordOf(service: Service): Promise<RequestRecord> {
  return ended(async () => (await service.store.listRequests({ limit: 1 }))[0])
}

async function ended(read: () => Promise<RequestRecord | undefined>): Promise<RequestRecord> {
  // Unlike `expect.poll`, this also works in concurrent tests.
  return vi.waitFor(
    async () => {
      const record = await read()
      expect(record?.state).toBe('done')
      return record!
    },
    { timeout: 20_000, interval: 5 },
  )
}
