import { expect } from 'vitest'
import type { AnswerEvent, Conversation, Usage } from '../../src/domain/conversation.ts'
import { errorCatalog, type ServiceError } from '../../src/domain/errors.ts'
import type { Format } from '../../src/formats/format.ts'
import { clientFormats } from '../../src/formats/formats.ts'

/**
 * Writes the emitted events in every client format, reads them back as a client would, and asserts that nothing is
 * lost.
 */
export function expectEncodable(
  emitted: readonly AnswerEvent[],
  conversation: Conversation,
  usage: Usage,
  error: ServiceError | undefined,
): void {
  const text = textOf(emitted)
  for (const format of Object.values(clientFormats)) {
    if (error !== undefined) {
      expectBroken(format, emitted, conversation, error)
      continue
    }
    const events = conversation.stream
      ? readStream(format, streamOf(format, emitted, conversation))
      : format.readAnswer().readWhole(writer(format, conversation).writeWhole(emitted))
    expect(textOf(events), format.id).toBe(text)
    const read = events.findLast((event) => event.type === 'usage')
    expect(read?.usage.outputTokens, format.id).toBe(usage.outputTokens)
    expect(read?.usage.inputTokens, format.id).toBe(usage.inputTokens)
    expect(events.at(-1)?.type === 'finish' || events.some(({ type }) => type === 'finish'), format.id).toBe(true)
  }
}

function streamOf(format: Format, emitted: readonly AnswerEvent[], conversation: Conversation): string {
  const writing = writer(format, conversation)
  return emitted.map((event) => writing.writeEvents([event])).join('') + writing.writeEnd()
}

/** Asserts that a broken stream ends with an error that its reader recognizes (contract 10). */
function expectBroken(
  format: Format,
  emitted: readonly AnswerEvent[],
  conversation: Conversation,
  error: ServiceError,
): void {
  if (!conversation.stream) return
  const writing = writer(format, conversation)
  const { type, source, retryable } = errorCatalog[error.code]
  const said = emitted.map((event) => writing.writeEvents([event])).join('')
  const failure = { code: error.code, type, message: 'It broke.', param: null, source, retryable, requestId: 'req_1' }
  const all = said + writing.writeFailure(failure)
  expect(all, format.id).toContain('It broke.')
  expect(() => {
    const reader = format.readAnswer()
    for (const data of dataOf(all)) reader.readEvent(data)
    if (!reader.finished) throw new Error('it ends without its terminal event')
  }, format.id).toThrow()
}

function readStream(format: Format, stream: string): AnswerEvent[] {
  const reader = format.readAnswer()
  const events = dataOf(stream).flatMap((data) => reader.readEvent(data))
  expect(reader.finished, format.id).toBe(true)
  return events
}

function dataOf(stream: string): string[] {
  const lines = stream.split('\n').filter((line) => line.startsWith('data: '))
  return lines.map((line) => line.slice('data: '.length)).filter((data) => data !== '[DONE]')
}

function writer(format: Format, conversation: Conversation): ReturnType<Format['writeAnswer']> {
  let ids = 0
  const mintId = (): string => `id${(ids += 1)}`
  const context = { conversation, requestId: 'req_1', createdAt: 1, nowSeconds: () => 2, isStored: false, mintId }
  return format.writeAnswer(context)
}

function textOf(events: readonly AnswerEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('')
}
