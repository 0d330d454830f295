import { expect, test } from 'vitest'
import type { AnswerEvent } from '../../../src/domain/conversation.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { alwaysGranted } from '../../../src/gateway/auth/call-grant.ts'
import { AnswerEvents } from '../../../src/gateway/request/answer-events.ts'
import { AttemptRun } from '../../../src/gateway/request/attempt.ts'
import { contextOf } from '../../formats/exchange.ts'
import { FakeBackend } from '../fake-gateway.ts'
import { ManualClock } from '../manual-clock.ts'

const chunk = (delta: object, reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`

test.each([
  ['a complete', 'stop', undefined],
  ['an incomplete', null, 'timeout'],
])('%s answer from a backend that falls silent and keeps its stream open ends in time', async (_, reason, outcome) => {
  const clock = new ManualClock()
  const backend = new FakeBackend('b', 'openai-chat')
  Object.assign(backend.timeouts, { idleMs: 30_000 })
  const events = new AnswerEvents(clock)
  const context = contextOf(formatById('openai-chat').readRequest({ model: 'p', messages: [], stream: true }))
  const lane = events.laneOf({ context, backend, backendFormat: formatById('openai-chat') })
  const run = new AttemptRun(backend, { lane, stream: true, clock })
  const opened = run.open({ body: '{}', stream: true, requestId: 'req_1' }, alwaysGranted)
  backend.head()
  backend.send(chunk({ content: 'Hi.' }))
  await opened
  events.flowFrom(run, () => {})
  backend.send(chunk({}, reason))
  const seen: AnswerEvent[] = []
  let end: unknown
  const readAll = async (): Promise<void> => {
    for (let next = await events.next(); next !== undefined; next = await events.next()) seen.push(...next)
    end = 'whole'
  }
  readAll().catch((error: unknown) => (end = error))
  await clock.advance(1_100)
  if (outcome !== undefined) {
    expect(end).toBeUndefined()
    await clock.advance(30_000)
    expect(end).toMatchObject({ outcome })
  } else expect(end).toBe('whole')
  expect(seen.map(({ type }) => type)).toContain('text')
})
