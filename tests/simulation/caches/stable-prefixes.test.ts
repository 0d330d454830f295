import { describe, expect, test } from 'vitest'
import type { AssistantPart, Conversation, Tool, Turn } from '../../../src/domain/conversation.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import type { ClientFormatId } from '../../../src/formats/format.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { permute } from '../../../src/gateway/fusion/engine/seeded-random.ts'
import {
  geminiBlocks,
  messagesBlocks,
  openAiBlocks,
  type PromptBlock,
} from '../../../src/simulation/caches/prompt-blocks.ts'
import { targetOf } from '../../formats/exchange.ts'
import { casesOf } from '../../long-run.ts'
import { Dice } from '../dice.ts'
import { cachingProviders, session, written, type CachingProvider } from './cache-world.ts'

const cases = casesOf({ sample: 40, all: 2_000 })
const clients: readonly ClientFormatId[] = ['openai-chat', 'openai-responses', 'anthropic-messages']
/** What a request says about its own answer alone: it follows everything that is read again. */
const note = /For this answer, call only|Answer with one JSON object|Give your final answer/

describe.each(clients)('each request of a growing session from a %s client', (client) => {
  test.each(cachingProviders)('begins like the one before at $name', (provider) => {
    for (let seed = 1; seed <= cases; seed += 1) {
      const dice = new Dice(seed)
      const settings = randomSettings(dice, client)
      const turns = randomTurns(dice, client, settings.tools.length > 0)
      let before: readonly PromptBlock[] = []
      let settingsBefore: string | undefined
      let changes = 0
      for (const end of requestEnds(turns)) {
        const tools = permute(settings.tools, dice.number)
        const body = clientBody(client, { ...settings, tools, turns: turns.slice(0, end) })
        const sent = written(provider.backend, client, body, session).body
        const blocks = blocksOf(provider, sent)
        const isRelayed = provider.backend.format === client
        // A relayed request keeps the order of the caller's tools.
        const compared = isRelayed ? blocks.filter(({ section }) => section !== 'tools') : blocks
        const texts = compared.map(({ role, text }) => `${role} ${text}`)
        const earlier = before.map(({ role, text }) => `${role} ${text}`)
        expect(texts.slice(0, earlier.length), `seed ${seed}, ${end} turns`).toEqual(earlier)
        const now = JSON.stringify([sent['thinking'], sent['tool_choice'], sent['output_config']])
        if (now !== (settingsBefore ?? now)) changes += 1
        settingsBefore = now
        before = compared.filter(({ text }) => !note.test(text))
      }
      // A model with a thinking budget stops thinking, once, when thoughts are missing.
      const isBudgeted = client !== 'anthropic-messages' && provider.backend.model === 'claude-sonnet-4-5'
      expect(changes, `seed ${seed}`).toBeLessThanOrEqual(isBudgeted ? 1 : 0)
    }
  })
})

function blocksOf({ backend }: CachingProvider, body: JsonObject): readonly PromptBlock[] {
  if (backend.format === 'gemini') return geminiBlocks(body)
  return backend.format === 'anthropic-messages' ? messagesBlocks(body) : openAiBlocks(body)
}

/** The request in the client's own format. */
function clientBody(client: ClientFormatId, conversation: Conversation): JsonObject {
  const target = { ...targetOf(conversation), model: client === 'anthropic-messages' ? 'claude-opus-4-8' : 'model' }
  return formatById(client).writeRequest(conversation, target)
}

type Settings = Omit<Conversation, 'turns'>

function randomSettings(dice: Dice, client: ClientFormatId): Settings {
  // Messages cannot express the last two.
  const isOpenAi = client !== 'anthropic-messages'
  const tools = Array.from({ length: dice.upTo(4) }, (_, at): Tool => ({
    type: 'function',
    name: `tool_${at}`,
    description: 'd',
    parameters: { type: 'object', properties: {} },
  }))
  const names = tools.slice(0, 1).map((tool) => (tool.type === 'hosted' ? '' : tool.name))
  return {
    profile: 'svc-router/frontier',
    stream: false,
    tools,
    sampling: {},
    streamUsage: false,
    hints: {},
    ...(dice.chance(0.4) && { reasoning: { effort: dice.pick(['low', 'medium', 'high']) } }),
    ...(isOpenAi && tools.length > 0 && dice.chance(0.3) && { toolChoice: { type: 'allowed', mode: 'auto', names } }),
    ...(isOpenAi && dice.chance(0.2) && { outputFormat: { type: 'json_object' } }),
  }
}

/** Instructions, then the user, the model, and results of tools; later instructions before or after the user's words. */
function randomTurns(dice: Dice, client: ClientFormatId, hasTools: boolean): Turn[] {
  const turns: Turn[] = []
  const say = (role: 'system' | 'developer' | 'user', text: string): void => {
    turns.push({ role, parts: [{ type: 'text', text }] })
  }
  if (dice.chance(0.8)) say('system', 'You are an agent.')
  say('user', 'Begin the work.')
  for (let round = 0; round < 6; round += 1) {
    const calls = Array.from({ length: hasTools ? dice.upTo(3) : 0 }, (_, at) => `call_${round}_${at}`)
    const parts: AssistantPart[] = []
    if (dice.chance(0.3)) parts.push({ type: 'reasoning', text: 'I look at the file.' })
    if (calls.length === 0 || dice.chance(0.5)) parts.push({ type: 'text', text: `Answer ${round}.` })
    for (const id of calls) {
      parts.push({ type: 'call', kind: 'function', id, name: 'tool_0', arguments: '{"path":"a"}' })
    }
    turns.push({ role: 'assistant', parts })
    for (const callId of calls) {
      const result: Turn = {
        role: 'tool',
        callId,
        kind: 'function',
        parts: [{ type: 'text', text: `Result ${callId}.` }],
      }
      turns.push(result)
    }
    // In Messages, instructions may only follow the user.
    const isEarly = client !== 'anthropic-messages' && dice.chance(0.2)
    if (isEarly) say('developer', `Now note ${round}.`)
    if (calls.length === 0 || dice.chance(0.2)) say('user', `Go on with ${round}.`)
    else if (isEarly) say('user', 'Yes.')
    if (dice.chance(0.1)) say('developer', `Also note ${round}.`)
  }
  return turns
}

/** Where requests end: before each turn of the model, and at the end. */
function requestEnds(turns: readonly Turn[]): number[] {
  const ends = turns.flatMap(({ role }, at) => (role === 'assistant' ? [at] : []))
  return [...ends, turns.length]
}
