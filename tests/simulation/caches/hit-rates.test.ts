import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { AnthropicCache } from '../../../src/simulation/caches/anthropic-cache.ts'
import { MarkedOpenAiCache, OpenAiCache } from '../../../src/simulation/caches/openai-cache.ts'
import { agentTurns } from '../../../src/simulation/caches/recorded-session.ts'
import { inputOf, isRejected } from '../../../src/simulation/caches/simulated-cache.ts'
import { recordedRequests } from '../../formats/exchange.ts'
import {
  bill,
  cachingProviders,
  contextsOf,
  newSessions,
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
  const caches = [new MarkedOpenAiCache(), new OpenAiCache()]
  const [marked, older] = caches.map((cache) => bill(cache, bodies, prices))
  return marked!.read > older!.read ? marked! : older!
}

/**
 * What a session costs through the service, with marks and, where they cost something, without any: the first session of
 * an account.
 */
function through(provider: CachingProvider, client: ClientSession, sessions = newSessions()) {
  const { backend, open, ...prices } = provider
  const takesMarks = prices.write > 1
  const requests = client.requests(turns, sealedBy(backend, client.format))
  const contexts = takesMarks ? contextsOf(provider, client, requests, { sessions }) : []
  const send = (addsMarks: boolean): JsonObject[] =>
    requests.map((request, at) => {
      const context = { ...(contexts[at] ?? session), addsMarks }
      return written(backend, client.format, request, context).body
    })
  const found = bill(open(), send(true), prices)
  return { found, unmarked: takesMarks ? bill(open(), send(false).map(withoutMarks), prices) : undefined }
}

describe('a session of twenty requests', () => {
  const shares = new Map(
    ['direct', ...cachingProviders.map(({ name }) => name)].map((name): [string, string[]] => [name, []]),
  )

  test.each(clientSessions)('of $client reads as much through the service as directly', (client) => {
    const direct = share(native(client))
    shares.get('direct')!.push(percent(direct))
    for (const provider of cachingProviders) {
      const { name } = provider
      const { found, unmarked } = through(provider, client)
      shares.get(name)!.push(percent(share(found)))
      expect.soft(share(found), `${client.client} at ${name}`).toBeGreaterThanOrEqual(leastOfNative * direct)
      if (unmarked !== undefined)
        expect.soft(found.cost, `${client.client} at ${name}`).toBeLessThanOrEqual(unmarked.cost)
    }
  })

  const withoutName = clientSessions.filter(({ client }) => client.startsWith('OpenAI SDK'))

  test.each(withoutName)('of $client reads as much if an earlier one went on', (client) => {
    const direct = share(native(client))
    for (const provider of cachingProviders.filter(({ name }) => name.startsWith('Claude'))) {
      const sessions = newSessions()
      const requests = client.requests(turns.slice(0, 2), () => '').map((body) => inConversation(body, 1))
      contextsOf(provider, client, requests, { sessions })
      const { found } = through(provider, client, sessions)
      expect.soft(share(found), provider.name).toBeGreaterThanOrEqual(leastOfNative * direct)
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
    const requests = [first, second].map((file) => inOneSession(recorded(file)))
    for (const provider of cachingProviders) {
      const { name, backend, open } = provider
      const cache = open()
      const contexts = contextsOf(provider, { format, file: first }, requests)
      const [before, after] = requests.map((request, at) => {
        const answer = cache.ask(written(backend, format, request, contexts[at]).body, { nowMs: 0 })
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
    const continuation = { isSeen: true, isExpected: false, began: 0, wentOn: 0 }
    const sent = written(claude.backend, 'openai-chat', body!, { ...session, continuation })
    expect(sent.text).toContain('cache_control')
  })
})

describe('clients that send one request and never continue it', () => {
  const stateless = clientSessions.find(({ client }) => client === 'OpenAI SDK, Responses')!
  const plain: ClientSession = {
    ...stateless,
    client: 'OpenAI SDK, Responses, plain',
    requests: (...given) => stateless.requests(...given).map(({ include: _include, ...body }) => body),
  }
  const unexpected = ['OpenAI SDK, chat', plain.client]

  test.each([...clientSessions, plain])('$client: are not marked, or no longer after the third', (client) => {
    const [first] = client.requests([], () => '')
    const isExpectedToGoOn = !unexpected.includes(client.client)
    for (const provider of cachingProviders.filter(({ write }) => write > 1)) {
      const { backend, open, ...prices } = provider
      const sessions = newSessions()
      for (let at = 0; at < 4; at += 1) {
        const request = inConversation(first!, at)
        const [context] = contextsOf(provider, client, [request], { sessions, name: `${at}` })
        const cost = (addsMarks: boolean): number => {
          const { body } = written(backend, client.format, request, { ...context!, addsMarks })
          return bill(open(), [body], prices).cost
        }
        const most = (isExpectedToGoOn && at < 3 ? provider.write : 1) * cost(false)
        expect.soft(cost(true), `request ${at + 1} at ${provider.name}`).toBeLessThanOrEqual(most)
      }
    }
  })

  test('are marked from the first request on once earlier conversations with their tools went on', () => {
    const client = clientSessions.find(({ file }) => file === 'openai-chat-tools')!
    const sessions = newSessions()
    const marked = ['a', 'b'].map((name, at) => {
      const requests = client.requests(turns.slice(0, 3), () => '').map((body) => inConversation(body, at))
      const contexts = contextsOf(claude, client, requests, { sessions, name })
      return requests.map((body, turn) =>
        written(claude.backend, client.format, body, contexts[turn]).text.includes('cache_control'),
      )
    })
    expect(marked).toEqual([
      [false, true, true, true],
      [true, true, true, true],
    ])
  })
})

/** The same request in another conversation: the user begins with something else. */
function inConversation(body: JsonObject, at: number): JsonObject {
  const member = Array.isArray(body['input']) ? 'input' : 'messages'
  const list = [...(body[member] as readonly JsonObject[])]
  const first = list.findIndex(({ role }) => role === 'user')
  list[first] = { ...list[first], content: `Task ${at}.` }
  return { ...body, [member]: list }
}

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
