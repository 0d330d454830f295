import { expect, onTestFinished } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import { progressAfterMs } from '../../src/gateway/fusion/fused-answer.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service, type ServiceOptions } from '../service.ts'

type RequestEvent = Extract<Service['events'][number], { event: 'request' }>

/** From a caller's leaving until every call for it is closed (contract 9.10). */
const closedWithinMs = 100

/** A simulated model's next answer. */
export const answer = (text: string): ScriptStep => ({ do: 'answer', text })

/** The real clock, except that the time to open a stream with progress never comes. */
export function withoutProgress(): Clock {
  const real = systemClock()
  const after: Clock['after'] = (ms, run) => (ms === progressAfterMs ? { cancel() {} } : real.after(ms, run))
  return { ...real, after }
}

/** A service whose providers, one after the other, say these steps; it is stopped when the test is over. */
export async function startScripted(
  scripts: readonly (readonly ScriptStep[])[],
  options?: ServiceOptions,
): Promise<Service> {
  const service = await Service.start(options)
  onTestFinished(() => service.stop())
  for (const [index, steps] of scripts.entries()) service.providers[index]!.script(steps)
  return service
}

/**
 * A caller that leaves once all of `asked` have a call under way: these are closed in time. Gives the event of the
 * request.
 */
export async function leaveAmid(
  service: Service,
  { path, body }: { readonly path: string; readonly body: object },
  asked = service.providers,
): Promise<RequestEvent> {
  const leave = new AbortController()
  const response = service.post(path, body, {}, leave.signal).then((begun) => begun.text())
  response.catch(() => {})
  await until(() => asked.every((provider) => provider.counts().open === 1))
  const leftAtMs = Date.now()
  leave.abort()
  await expect(response).rejects.toThrow()
  await until(() => asked.every((provider) => provider.counts().aborted === 1))
  for (const provider of asked) expect(provider.counts().abortedAtMs[0]! - leftAtMs).toBeLessThan(closedWithinMs)
  const told = (): RequestEvent | undefined => service.events.find((event) => event.event === 'request')
  await until(() => told() !== undefined)
  return told()!
}

/** The events of a stream, parsed. */
export function eventsOf(text: string): JsonObject[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject)
}

/** What was said, whichever format and form it came in. */
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

/** The record of a request once its end is on disk. */
export async function recordOf({ store }: Service, id: string | null): Promise<RequestRecord> {
  for (let tries = 0; tries < 200; tries++) {
    const record = await store.findRequest(id ?? '')
    if (record?.state === 'done') return record
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('the request was not recorded')
}

/** Waits for two seconds at most. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(isSo()).toBe(true)
}

/**
 * Reads a stream until it has been kept alive four times, in any format, and leaves; gives what was there until then.
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
