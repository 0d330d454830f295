import { expect } from 'vitest'
import type { JsonObject } from '../../src/domain/conversation.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import type { ScriptStep } from '../../src/providers/simulated/script.ts'
import type { Service } from '../service.ts'

/** A simulated model's next answer. */
export const answer = (text: string): ScriptStep => ({ do: 'answer', text })

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
