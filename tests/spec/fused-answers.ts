import { expect } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import { progressAfterMs } from '../../src/gateway/fusion/fused-answer.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { HeldTime } from '../held-time.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { shareServices } from '../shared-service.ts'

type RequestEvent = Extract<Service['events'][number], { event: 'request' }>

/** The time limit from the disconnect of a client until every call for it is closed (contract 9.10). */
const closedWithinMs = 100

/** A script step that answers with a text. */
export const answer = (text: string): ScriptStep => ({ do: 'answer', text })

/** The real clock without the timer that opens a stream with progress. */
export function withoutProgress(): Clock {
  const real = systemClock()
  const after: Clock['after'] = (ms, run) => (ms === progressAfterMs ? { cancel() {} } : real.after(ms, run))
  return { ...real, after }
}

type StartScripted = (scripts: readonly (readonly ScriptStep[])[], options?: ServiceOptions) => Promise<Service>

/** Like `shareServices`, with a script for each provider. */
export function scriptedServices(): StartScripted {
  const share = shareServices()
  return async (scripts, options) => {
    const service = await share(options)
    for (const [index, steps] of scripts.entries()) service.providers[index]!.script(steps)
    return service
  }
}

/**
 * Sends a request, disconnects once each provider in `called` has an open call, and expects that these calls are closed
 * in time. Returns the log event of the request.
 */
export async function disconnectDuring(
  service: Service,
  { path, body }: { readonly path: string; readonly body: object },
  called = service.providers,
): Promise<RequestEvent> {
  const disconnect = new AbortController()
  const response = service.post(path, body, {}, disconnect.signal).then((begun) => begun.text())
  response.catch(() => {})
  await until(() => called.every((provider) => provider.counts().open === 1))
  using held = new HeldTime()
  const leftMs = performance.now()
  disconnect.abort()
  await expect(response).rejects.toThrow()
  await until(() => called.every((provider) => provider.counts().aborted === 1))
  for (const provider of called) {
    const abortedMs = provider.counts().abortedAtMs[0]! - performance.timeOrigin
    expect(abortedMs - leftMs - held.within(leftMs, abortedMs)).toBeLessThan(closedWithinMs)
  }
  const requestEvent = (): RequestEvent | undefined => service.events.find((event) => event.event === 'request')
  await until(() => requestEvent() !== undefined)
  return requestEvent()!
}

/** The parsed events of a stream. */
export function eventsOf(text: string): JsonObject[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject)
}

/** The text of an answer in any format, streamed or not. */
export function saidIn(text: string): string {
  if (text.startsWith('{')) {
    const { choices, output, content } = JSON.parse(text) as {
      choices?: { message: { content: string } }[]
      output?: { type: string; content?: { text: string }[] }[]
      content?: { type: string; text?: string }[]
    }
    if (choices !== undefined) return choices[0]!.message.content
    if (content !== undefined) return content.map((block) => block.text ?? '').join('')
    return output!
      .flatMap((item) => (item.type === 'message' ? item.content! : []))
      .reduce((all, part) => all + part.text, '')
  }
  return (eventsOf(text) as { type?: string; delta?: unknown; choices?: { delta: { content?: string | null } }[] }[])
    .map(({ type, delta, choices }) => {
      if (type === 'response.output_text.delta') return delta as string
      if (type === 'content_block_delta') return (delta as { text?: string }).text ?? ''
      return choices?.[0]?.delta.content ?? ''
    })
    .join('')
}

/** Waits until the end of a request is stored, and returns its record. */
export async function recordOf({ store }: Service, id: string | null): Promise<RequestRecord> {
  for (let tries = 0; tries < 200; tries++) {
    const record = await store.findRequest(id ?? '')
    if (record?.state === 'done') return record
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('the request was not recorded')
}

/** Waits until a condition is true, at most two seconds. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(isSo()).toBe(true)
}

/**
 * Reads a stream of any format until its fourth keep-alive, then disconnects. Returns the text so far.
 */
export async function keptAliveText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of response.body!) {
    text += decoder.decode(bytes, { stream: true })
    const signs = text.match(/^: |"type":"response\.in_progress"|"type":"ping"/gm) ?? []
    if (signs.length >= 4) break
  }
  return text
}
