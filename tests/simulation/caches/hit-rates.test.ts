import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { AnthropicCache, withoutOldThoughts } from '../../../src/simulation/caches/anthropic-cache.ts'
import { BlockCache } from '../../../src/simulation/caches/block-cache.ts'
import { MarkedOpenAiCache, OpenAiCache } from '../../../src/simulation/caches/openai-cache.ts'
import { messagesBlocks } from '../../../src/simulation/caches/prompt-blocks.ts'
import { agentTurns } from '../../../src/simulation/caches/recorded-session.ts'
import { inputOf, isRejected } from '../../../src/simulation/caches/simulated-cache.ts'
import { recordedRequests } from '../../formats/exchange.ts'
import {
  bill,
  cachingProviders,
  sealedBy,
  session,
  written,
  type CachingProvider,
  type SessionBill,
} from './cache-world.ts'
import { clientSessions, recorded, type ClientSession } from './client-sessions.ts'

const turns = agentTurns(19)
/** A session may lose this much of what the client reads from the cache directly. */
const leastOfNative = 0.95
const claude = cachingProviders[0]!

/** The session sent directly to the provider that the client is made for: to the cache that reads more of it. */
function native(client: ClientSession): SessionBill {
  const bodies = client.requests(turns, (turn) => `SIGNATURE${turn}`)
  const prices = { write: 1.25, read: 0.1 }
  if (client.format === 'anthropic-messages') return bill(new AnthropicCache({ minimum: 512 }), bodies, prices)
  const [marked, older] = [new MarkedOpenAiCache(), new OpenAiCache()].map((cache) => bill(cache, bodies, prices))
  return marked!.read > older!.read ? marked! : older!
}

/** What a session costs through the service, with marks and without any. */
function through({ backend, open, ...prices }: CachingProvider, client: ClientSession) {
  const requests = client.requests(turns, sealedBy(backend, client.format))
  const send = (addsMarks: boolean): JsonObject[] =>
    requests.map((request) => written(backend, client.format, request, { ...session, addsMarks }).body)
  const bodies = send(true)
  return { bodies, found: bill(open(), bodies, prices), unmarked: bill(open(), send(false).map(withoutMarks), prices) }
}

/** All that a model can read that drops the thoughts before the user's last words, as older Claudes do. */
function bestWithoutThoughts(bodies: readonly JsonObject[]): number {
  const read = (body: JsonObject) => withoutOldThoughts(messagesBlocks(body))
  return share(bill(new BlockCache({ blockTokens: 16, blocks: 200_000, read }), bodies, { write: 1, read: 0 }))
}

describe('a session of twenty requests', () => {
  const shares = new Map(
    ['direct', ...cachingProviders.map(({ name }) => name)].map((name): [string, string[]] => [name, []]),
  )

  test.each(clientSessions)('of $client reads as much through the service as directly', (client) => {
    const direct = share(native(client))
    shares.get('direct')!.push(percent(direct))
    for (const provider of cachingProviders) {
      const { name, backend } = provider
      const { bodies, found, unmarked } = through(provider, client)
      shares.get(name)!.push(percent(share(found)))
      const dropsThoughts = backend.model === 'claude-sonnet-4-5'
      const best = dropsThoughts ? Math.min(direct, bestWithoutThoughts(bodies)) : direct
      expect.soft(share(found), `${client.client} at ${name}`).toBeGreaterThanOrEqual(leastOfNative * best)
      expect.soft(found.cost, `${client.client} at ${name}`).toBeLessThanOrEqual(unmarked.cost)
    }
  })

  test('the documentation has the table of what they read', () => {
    const names = clientSessions.map(({ client }) => client)
    const rows = [
      ['provider', ...names],
      ['-', ...names.map(() => '-')],
      ...Array.from(shares, ([name, cells]) => [name, ...cells]),
    ]
    console.log(rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n'))
    const documented = readFileSync(new URL('../../../docs/cached-turns.md', import.meta.url), 'utf8')
    const lines = documented.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
    for (const [name, cells] of shares) expect.soft(lines).toContainEqual(['', name, ...cells, ''])
  })
})

describe('two requests that a client sent one after the other', () => {
  const pairs = [
    ['codex-turn1', 'codex-function-call-output', 'openai-responses'],
    ['opencode-chat-main', 'opencode-chat-tool-turn2', 'openai-chat'],
    ['opencode-responses-main', 'opencode-responses-tool-turn2', 'openai-responses'],
  ] as const

  test.each(pairs)('%s, then %s: the second reads what the first had', (first, second, format) => {
    for (const { name, backend, open } of cachingProviders) {
      const cache = open()
      const [before, after] = [first, second].map((file) => {
        const answer = cache.ask(written(backend, format, inOneSession(recorded(file))).body, { nowMs: 0 })
        if (isRejected(answer)) throw new Error(answer.rejected)
        return answer
      })
      // Gemini 3 caches no prompt as short as that of opencode, whose texts were left out.
      const isTooShort = name === 'Gemini 3 Pro' && inputOf(before!) < 4_096
      const least = isTooShort ? 0 : leastOfNative * inputOf(before!)
      expect.soft(after!.readTokens, name).toBeGreaterThanOrEqual(least)
    }
  })
})

describe('a request that is probably not read again', () => {
  const single = recordedRequests().filter(({ body, path }) => {
    const { tools, previous_response_id: previous, input } = body ?? {}
    const hasTools = Array.isArray(tools) && tools.length > 0
    const isAnswer = Array.isArray(input) && JSON.stringify(input).includes('item_reference')
    return body !== undefined && path.includes('completions') && !hasTools && previous === undefined && !isAnswer
  })

  test.each(single)('is not marked: $file', ({ body }) => {
    expect(written(claude.backend, 'openai-chat', body!, session).text).not.toContain('cache_control')
  })

  test('is marked in a session that was seen before', () => {
    const { body } = single[0]!
    expect(written(claude.backend, 'openai-chat', body!, { ...session, isReread: true }).text).toContain(
      'cache_control',
    )
  })
})

/** The requests of Codex were recorded in different sessions, which have other keys and IDs. */
function inOneSession(body: JsonObject): JsonObject {
  const { input, prompt_cache_key: key, ...rest } = body
  if (!Array.isArray(input)) return body
  const items = (input as readonly JsonObject[]).map(({ id: _id, ...item }) => item)
  return { ...rest, input: items, ...(key !== undefined && { prompt_cache_key: 'one' }) }
}

const share = ({ input, read }: SessionBill): number => read / input

function percent(part: number): string {
  return `${(100 * part).toFixed(1)}%`
}

function withoutMarks(body: JsonObject): JsonObject {
  const isMark = (name: string): boolean => name === 'cache_control' || name === 'prompt_cache_breakpoint'
  return JSON.parse(JSON.stringify(body, (name, value: unknown) => (isMark(name) ? undefined : value))) as JsonObject
}
