import { expect, test } from 'vitest'
import type { Conversation, Turn } from '../../../src/domain/conversation.ts'
import { FusionNotes } from '../../../src/gateway/fusion/fusion-notes.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { createSealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'

const clock: Clock = { nowMs: () => 0, monotonicMs: () => 0, after: () => ({ cancel: () => {} }) }
const sealer = createSealer({
  current: { id: 'k1', key: new Secret(new Uint8Array(32).fill(7)) },
  random: systemRandom(),
})
const says = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })
const conversationOf = (turns: readonly Turn[]): Conversation =>
  ({ turns, hints: { sealedReasoning: true } }) as unknown as Conversation
const memo = { writer: 'beta', notes: 'n', mark: 'm' }

test('the notes give the deliberated turn the findings, and later turns only the writer', () => {
  const notes = new FusionNotes(sealer, clock)
  const first = [says('One.')]
  const sealed = notes.saverFor('acc_1', conversationOf(first))(memo)!
  const answered: Turn = { role: 'assistant', parts: [{ type: 'text', text: 'Uno.' }] }
  expect(notes.recall('acc_1', conversationOf(first))).toEqual({ pinned: 'beta', memo })
  expect(notes.recall('acc_1', conversationOf([...first, answered, says('Two.')]))).toEqual({ pinned: 'beta' })
  expect(notes.recall('acc_2', conversationOf(first))).toBeUndefined()
  expect(notes.recall('acc_1', conversationOf([says('Other.')]))).toBeUndefined()
  expect(notes.recall('acc_1', conversationOf([]))).toBeUndefined()

  const elsewhere = new FusionNotes(sealer, clock)
  const echo: Turn = { role: 'assistant', parts: [{ type: 'reasoning', text: '', sealed }] }
  expect(elsewhere.recall('acc_1', conversationOf([...first, echo]))).toEqual({ pinned: 'beta', memo })
  expect(elsewhere.recall('acc_1', conversationOf([...first, echo, says('Two.')]))).toEqual({ pinned: 'beta' })
  expect(elsewhere.recall('acc_2', conversationOf([...first, echo]))).toBeUndefined()
})

test('only the most recent conversations are cached, and only the newest of the notes that a client sends back is read', () => {
  const notes = new FusionNotes(sealer, clock)
  for (let index = 0; index < 2_001; index++) notes.saverFor('acc_1', conversationOf([says(`${index}`)]))(memo)
  expect(notes.recall('acc_1', conversationOf([says('0')]))).toBeUndefined()
  expect(notes.recall('acc_1', conversationOf([says('1')]))).toBeDefined()
  const sealed = notes.saverFor('acc_1', conversationOf([says('Kept.')]))(memo)!
  const made = Array.from(
    { length: 16 },
    () => ({ type: 'reasoning', text: '', sealed: 'svcr1.fusion.v1.k1.AA.AA' }) as const,
  )
  const own = { type: 'reasoning', text: '', sealed } as const
  const turns = (parts: (typeof own)[]): Turn[] => [says('Moved.'), { role: 'assistant', parts }]
  expect(notes.recall('acc_1', conversationOf(turns([own, ...made])))).toBeUndefined()
  expect(notes.recall('acc_1', conversationOf(turns([...made, own])))).toEqual({ pinned: 'beta', memo })
})
