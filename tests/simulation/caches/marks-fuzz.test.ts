import { describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../../src/domain/json.ts'
import { AnthropicCache } from '../../../src/simulation/caches/anthropic-cache.ts'
import { MarkedOpenAiCache } from '../../../src/simulation/caches/openai-cache.ts'
import { openAiBlocks } from '../../../src/simulation/caches/prompt-blocks.ts'
import { isRejected } from '../../../src/simulation/caches/simulated-cache.ts'
import { casesOf } from '../../long-run.ts'
import { Dice } from '../dice.ts'
import { cachingProviders, session, written } from './cache-world.ts'
import { randomMessages } from './random-messages.ts'

const cases = casesOf({ sample: 500, all: 100_000 })
const at = { nowMs: 0 }
const seen = { isSeen: true, isExpected: false, began: 0, wentOn: 0 }
const claudes = cachingProviders.filter(({ backend }) => backend.format === 'anthropic-messages')
const openRouter = cachingProviders.find(({ name }) => name === 'Claude at OpenRouter')!
const marked = cachingProviders.filter(({ name }) => name.startsWith('GPT-5.6'))

describe('marks never turn a request into a 400', () => {
  test(`${cases} random requests, relayed to Claude`, () => {
    let added = 0
    for (let seed = 1; seed <= cases; seed += 1) {
      const dice = new Dice(seed)
      const body = randomMessages(dice)
      const direct = new AnthropicCache({ minimum: 0 }).ask({ ...body, model: 'm' }, at)
      expect(isRejected(direct) ? direct.rejected : 'accepted', `seed ${seed} itself`).toBe('accepted')
      const isSeen = dice.chance(0.5)
      const { backend } = dice.pick(claudes)
      const json = dice.chance(0.5) ? JSON.stringify(body) : JSON.stringify(body, null, 2)
      const own = { ...session, continuation: { ...seen, isSeen } }
      const sent = written(backend, 'anthropic-messages', body, own, json).body
      const answer = new AnthropicCache({ minimum: 0 }).ask(sent, at)
      expect(isRejected(answer) ? answer.rejected : 'accepted', `seed ${seed}`).toBe('accepted')
      const plain = written(backend, 'anthropic-messages', body, { ...own, addsMarks: false }, json).body
      expect(withoutMarks(sent), `seed ${seed}`).toEqual(withoutMarks(plain))
      if (marksIn(sent) > marksIn(plain)) added += 1
    }
    // Most of the random requests are short or marked by their caller.
    expect(added).toBeGreaterThan(cases / 20)
  })

  test(`${cases} random requests, translated to chat and Responses and back`, () => {
    for (let seed = 1; seed <= cases; seed += 1) {
      const dice = new Dice(seed)
      const body = randomMessages(dice)
      const own = { ...session, continuation: seen }
      const chat = written(openRouter.backend, 'anthropic-messages', body, own).body
      const atOpenRouter = new AnthropicCache({ minimum: 0, read: openAiBlocks }).ask(chat, at)
      expect(isRejected(atOpenRouter) ? atOpenRouter.rejected : 'accepted', `seed ${seed}`).toBe('accepted')
      for (const { backend } of marked) {
        const answer = new MarkedOpenAiCache().ask(written(backend, 'anthropic-messages', body, own).body, at)
        expect(isRejected(answer) ? answer.rejected : 'accepted', `seed ${seed}`).toBe('accepted')
      }
      const claude = dice.pick(claudes).backend
      const back = new AnthropicCache({ minimum: 0 }).ask(written(claude, 'openai-chat', chat, own).body, at)
      expect(isRejected(back) ? back.rejected : 'accepted', `seed ${seed}, back`).toBe('accepted')
    }
  })
})

function marksIn(body: JsonObject): number {
  return JSON.stringify(body).split('"cache_control":{"type"').length - 1
}

/** The same request without marks, with texts as blocks of text. */
function withoutMarks(body: JsonObject): Json {
  const clean = JSON.parse(
    JSON.stringify(body, (name, value: Json) => (name === 'cache_control' ? undefined : value)),
  ) as Record<string, Json>
  const blocks = (content: Json): Json => (typeof content === 'string' ? [{ type: 'text', text: content }] : content)
  if (clean['system'] !== undefined) clean['system'] = blocks(clean['system'])
  clean['messages'] = (clean['messages'] as JsonObject[]).map((message) => ({
    ...message,
    content: blocks(message['content'] as Json),
  }))
  return clean
}
