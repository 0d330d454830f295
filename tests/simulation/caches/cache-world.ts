import type { JsonObject } from '../../../src/domain/json.ts'
import { markWithIssuer } from '../../../src/formats/encrypted-reasoning.ts'
import type { ClientFormatId } from '../../../src/formats/format.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import { bodyShape, JsonScan } from '../../../src/formats/json-scan.ts'
import type { CacheContext } from '../../../src/gateway/cache/cache-context.ts'
import { CacheSessions } from '../../../src/gateway/cache/cache-sessions.ts'
import { cacheContext } from '../../../src/gateway/cache/provider-cache.ts'
import { statedSession } from '../../../src/gateway/cache/session-identity.ts'
import type { Backend, ModelRequest } from '../../../src/gateway/ports.ts'
import { CallerRequestWriter, writeFor } from '../../../src/gateway/request/backend-request.ts'
import { LearnedLimits } from '../../../src/gateway/routing/learned-limits.ts'
import { vendorEndpoint, vendors, type VendorId } from '../../../src/providers/registry.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { KeyedDigest } from '../../../src/runtime/keyed-digest.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { AnthropicCache } from '../../../src/simulation/caches/anthropic-cache.ts'
import { BlockCache } from '../../../src/simulation/caches/block-cache.ts'
import { MarkedOpenAiCache, OpenAiCache } from '../../../src/simulation/caches/openai-cache.ts'
import { geminiBlocks, openAiBlocks } from '../../../src/simulation/caches/prompt-blocks.ts'
import {
  inputOf,
  isRejected,
  type CacheReport,
  type SimulatedCache,
} from '../../../src/simulation/caches/simulated-cache.ts'
import { someBackend } from '../../gateway/routing/some-backend.ts'
import { recording, type ClientSession } from './client-sessions.ts'

/** Time between two requests of a session. */
const gapMs = 20_000
const memoryBlocks = 200_000

/** A provider in the table: how it is configured, and its simulated cache. */
export interface CachingProvider {
  readonly name: string
  readonly backend: Backend
  readonly open: () => SimulatedCache
  /** The price of writing and of reading a token, relative to a new one. */
  readonly write: number
  readonly read: number
}

function provider(
  name: string,
  vendor: VendorId,
  model: string,
  format: Backend['format'],
  open: () => SimulatedCache,
  [write, read]: readonly [number, number],
): CachingProvider {
  const { dialect } = vendorEndpoint(vendors[vendor], format)
  return { name, backend: someBackend(name, { format, model, dialect }), open, write, read }
}

const anthropic =
  (minimum: number, dropsThoughts = false) =>
  () =>
    new AnthropicCache({ minimum, dropsThoughts })
const openRouter = () => new AnthropicCache({ minimum: 512, read: openAiBlocks })
const server = () => new BlockCache({ blockTokens: 16, blocks: memoryBlocks, read: openAiBlocks })
const gemini = (minimum: number) => () =>
  new BlockCache({ blockTokens: 64, blocks: memoryBlocks, minimum, read: geminiBlocks })
/** Caches only requests with a key. */
const mistral = (): SimulatedCache => {
  const cache = new BlockCache({ blockTokens: 64, blocks: memoryBlocks, read: openAiBlocks })
  const none = new BlockCache({ blockTokens: 64, blocks: 1, read: openAiBlocks })
  return { ask: (body) => (typeof body['prompt_cache_key'] === 'string' ? cache : none).ask(body) }
}

export const cachingProviders: readonly CachingProvider[] = [
  provider('Claude Opus 5', 'anthropic', 'claude-opus-5', 'anthropic-messages', anthropic(512), [1.25, 0.1]),
  provider('Claude Opus 4.8', 'anthropic', 'claude-opus-4-8', 'anthropic-messages', anthropic(1_024), [1.25, 0.1]),
  provider(
    'Claude Sonnet 4.5',
    'anthropic',
    'claude-sonnet-4-5',
    'anthropic-messages',
    anthropic(1_024, true),
    [1.25, 0.1],
  ),
  provider('Claude at OpenRouter', 'openrouter', 'anthropic/claude-opus-5', 'openai-chat', openRouter, [1.25, 0.1]),
  provider('GPT-5.6, Responses', 'openai', 'gpt-5.6', 'openai-responses', () => new MarkedOpenAiCache(), [1.25, 0.1]),
  provider('GPT-5.6, chat', 'openai', 'gpt-5.6', 'openai-chat', () => new MarkedOpenAiCache(), [1.25, 0.1]),
  provider('GPT-5.1, Responses', 'openai', 'gpt-5.1', 'openai-responses', () => new OpenAiCache(), [1, 0.1]),
  provider('GPT-5.1, chat', 'openai', 'gpt-5.1', 'openai-chat', () => new OpenAiCache(), [1, 0.1]),
  provider('Gemini 2.5 Pro', 'gemini', 'gemini-2.5-pro', 'gemini', gemini(2_048), [1, 0.1]),
  provider('Gemini 3 Pro', 'gemini', 'gemini-3-pro', 'gemini', gemini(4_096), [1, 0.1]),
  provider('Mistral', 'mistral', 'mistral-large-latest', 'openai-chat', mistral, [1, 0.1]),
  provider('vLLM, chat', 'vllm', 'qwen3', 'openai-chat', server, [1, 0]),
  provider('vLLM, Responses', 'vllm', 'qwen3', 'openai-responses', server, [1, 0]),
]

const deps = { formats: formatById, relays: relayById, learned: new LearnedLimits(systemClock()) }
const keys = { id: 'k', key: new Secret(new Uint8Array(32)) }

export const session: CacheContext = {
  accountId: 'acc_1',
  addsMarks: true,
  keys,
  session: { digest: 'session-digest', id: 'ses_1', isNamed: true },
  continuation: { isSeen: false, isExpected: true, began: 0, wentOn: 0 },
}

/** What the service knows of each request of a session when it arrives, one after the other, at the same backend. */
export function contextsOf(
  { backend }: CachingProvider,
  { format, file }: Pick<ClientSession, 'format' | 'file'>,
  requests: readonly JsonObject[],
  { sessions = newSessions(), name = '' } = {},
): CacheContext[] {
  const { headers } = recording(file)
  const stated = statedSession(headers)
  return requests.map((body) => {
    const request = {
      ...requestOf(format, body),
      statedSession: stated && stated + name,
      userAgent: headers['user-agent'],
    }
    const conversation = formatById(format).readRequest(body)
    const { accountId } = session
    const turn = sessions.begin({ accountId, profile: 'p', request, conversation })
    if (turn instanceof Promise) throw new Error('there is no store')
    turn?.answeredBy({ target: backend, startedMs: 0 }, [backend], true)
    return { ...cacheContext(keys, accountId, {}, turn), session: session.session }
  })
}

/** What one process knows of sessions. */
export function newSessions(): CacheSessions {
  return new CacheSessions({ digest: new KeyedDigest(new Uint8Array(32)), clock: systemClock(), log: () => {} })
}

function requestOf(format: ClientFormatId, body: JsonObject, json = JSON.stringify(body)): ModelRequest {
  const bytes = Buffer.from(json)
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  return { id: 'req_1', format, bytes, members: scan.members(bytes), body, timeoutMs: undefined }
}

/** The body that the service sends to a backend for a client's request. */
export function written(
  backend: Backend,
  format: ClientFormatId,
  body: JsonObject,
  cache: CacheContext | undefined = session,
  json = JSON.stringify(body),
): { readonly text: string; readonly body: JsonObject } {
  const request = { ...requestOf(format, body, json), cache }
  const conversation = formatById(format).readRequest(body)
  const { body: out } = writeFor(backend, new CallerRequestWriter(request, conversation, deps))
  const text = typeof out === 'string' ? out : Buffer.from(out).toString('utf8')
  return { text, body: JSON.parse(text) as JsonObject }
}

/** Encrypted reasoning of a turn as the backend's answers give it to clients. */
export function sealedBy(backend: Backend, client: ClientFormatId): (turn: number) => string {
  const kind = backend.format === 'anthropic-messages' && client !== 'anthropic-messages' ? 'anthropic.thinking.' : ''
  const foreign = client === 'anthropic-messages' && backend.format !== 'anthropic-messages' ? 'svc-router.' : ''
  return (turn) => foreign + markWithIssuer(backend.issuer, `${kind}SIGNATURE${turn}`)
}

/** What a session cost at a provider, in tokens at the price of new input, and the share that was read. */
export interface SessionBill {
  readonly input: number
  readonly read: number
  readonly cost: number
}

/** Sends the requests of a session to a cache, one after the other. @throws if the provider rejects one */
export function bill(
  cache: SimulatedCache,
  bodies: readonly JsonObject[],
  prices: { write: number; read: number },
): SessionBill {
  const sum = { input: 0, read: 0, cost: 0 }
  for (const [at, body] of bodies.entries()) {
    const report = cache.ask(body, { nowMs: 1_000_000 + at * gapMs })
    if (isRejected(report)) throw new Error(`request ${at} was rejected: ${report.rejected}`)
    sum.input += inputOf(report)
    sum.read += report.readTokens
    sum.cost += costOf(report, prices)
  }
  return sum
}

function costOf(report: CacheReport, { write, read }: { write: number; read: number }): number {
  return report.newTokens + read * report.readTokens + write * report.written5mTokens + 2 * report.written1hTokens
}
