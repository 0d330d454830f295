import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FormatId } from '../../src/domain/format-id.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import { uuidOf } from '../../src/runtime/ids.ts'
import { casesOf, isLongRun } from '../long-run.ts'
import { Service } from '../service.ts'
import { type MeteredCall, MeteredProviders } from './bills/metered-provider.ts'
import { recomputed, type Tariff } from './bills/recomputed-bill.ts'
import { Dice } from './dice.ts'

const answers = casesOf({ sample: 600, all: 100_000 })
const fusions = casesOf({ sample: 12, all: 500 })
const atOnce = 24
const formats = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'gemini',
] as const satisfies readonly FormatId[]
/** Prices differ by backend. Even microdollars per million, so that half a price is exact. */
const dollars = Object.fromEntries(formats.map((format, index) => [format, priceList(index + 1)]))

function priceList(factor: number) {
  const rates = {
    input: 3 * factor,
    output: 15 * factor,
    cached_input: 0.3 * factor,
    cache_write: 3.75 * factor,
    cache_write_1h: 6 * factor,
  }
  const long = {
    input: 6 * factor,
    output: 22.5 * factor,
    cached_input: 0.6 * factor,
    cache_write: 7.5 * factor,
    cache_write_1h: 12 * factor,
  }
  return {
    ...rates,
    audio_input: 32 * factor,
    audio_output: 64 * factor,
    long_context: { above_tokens: 200_000, ...long },
    service_tiers: { flex: 0.5, priority: 2 },
  }
}

const micro = (usd: number): bigint => BigInt(Math.round(usd * 1e6))

function tariffOf(backend: string): Tariff {
  const given = dollars[formatOf(backend)]!
  const ratesOf = (rates: typeof given | (typeof given)['long_context']) => ({
    input: micro(rates.input),
    output: micro(rates.output),
    read: micro(rates.cached_input),
    write: micro(rates.cache_write),
    write1h: micro(rates.cache_write_1h),
  })
  return {
    ...ratesOf(given),
    audioInput: micro(given.audio_input),
    audioOutput: micro(given.audio_output),
    long: ratesOf(given.long_context),
  }
}

const backends = formats.flatMap((format) => [`${format}-1`, `${format}-2`])
const formatOf = (backend: string): FormatId => backend.slice(0, -2) as FormatId

let service: Service
let providers: MeteredProviders
const dice = new Dice(20_261_125)

beforeAll(async () => {
  providers = await MeteredProviders.start(dice)
  const plan = { name: 'Max', requests_per_minute: 10_000_000, requests_per_month: 10_000_000, premium: true }
  service = await Service.start({
    formats: [],
    settings: {
      plans: { max: plan },
      providers: Object.fromEntries(
        backends.map((id) => [id, { preset: 'custom', base_url: providers.baseUrlOf(id), format: formatOf(id) }]),
      ),
      backends: Object.fromEntries(
        backends.map((id) => [id, { provider: id, model: `gemini-3-${id}`, usd_per_million: dollars[formatOf(id)] }]),
      ),
      profiles: Object.fromEntries([
        ...backends.map((id) => [`one/${id}`, { backends: [id] }]),
        ...formats.map((format) => [
          `two/${format}`,
          { backends: [`${format}-1`, ...backends.filter((id) => id.endsWith('2'))] },
        ]),
      ]),
    },
  })
}, 60_000)
afterAll(async () => {
  await service.stop()
  await providers.stop()
})

interface Sent {
  readonly id: string
  /** The status, and the body if it was read. */
  readonly answer: string
  readonly isFused: boolean
  /** Whether the client left before the end. */
  readonly hasLeft: boolean
}

const paths = {
  'openai-chat': '/chat/completions',
  'openai-responses': '/responses',
  'anthropic-messages': '/messages',
} as const

async function send(number: number, profile: string): Promise<Sent> {
  const format = dice.pick(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)
  const stream = dice.upTo(1) === 0
  const leaves = stream && dice.upTo(29) === 0
  const messages = [{ role: 'user', content: `Question ${number}.` }]
  const body = {
    model: profile,
    stream,
    ...(format === 'openai-responses' ? { input: messages } : { messages }),
    ...(format === 'anthropic-messages' ? { max_tokens: 100 } : {}),
    ...(format === 'openai-chat' && stream && dice.upTo(1) === 0 ? { stream_options: { include_usage: true } } : {}),
  }
  const abort = new AbortController()
  const answer = await service.post(paths[format], body, {}, abort.signal)
  const id = answer.headers.get('x-request-id')!
  let text = ''
  try {
    if (leaves) {
      await answer.body?.getReader().read()
      abort.abort()
    } else text = await answer.text()
  } catch {
    // The service ends a broken stream, or we have left.
  }
  return { id, answer: `${answer.status} ${text}`, isFused: profile === 'svc-router/fusion', hasLeft: leaves }
}

/** The record once it is final. */
async function recordOf({ id, answer }: Sent): Promise<RequestRecord> {
  for (let tries = 0; tries < 600; tries++) {
    const record = await service.store.findRequest(id)
    if (record?.state === 'done') return record
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`no final record of ${id}, which was answered with ${answer}`)
}

const amountOf = (usd: string): bigint => {
  const [whole = '', fraction = ''] = usd.split('.')
  return BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'))
}

/** One accepted call as the record has it. */
interface RecordedCall {
  readonly backend: string
  readonly usage: NonNullable<RequestRecord['usage']>
  readonly costUsd: string | null | undefined
}

function callsOf({ attempts, usage, cost }: RequestRecord): RecordedCall[] {
  if (attempts.length === 1)
    return usage === undefined ? [] : [{ backend: attempts[0]!.backend, usage, costUsd: cost?.usd ?? null }]
  return attempts.flatMap((one) =>
    one.usage === undefined ? [] : [{ backend: one.backend, usage: one.usage, costUsd: one.costUsd }],
  )
}

/** What a cut or uncounted call costs by its recorded tokens. */
function estimated({ backend, usage }: RecordedCall): bigint | undefined {
  if (usage.webSearches !== undefined) return undefined
  const tariff = tariffOf(backend)
  const at = usage.inputTokens > 200_000 ? tariff.long : tariff
  const { cachedTokens: read, cacheWriteTokens: written = 0, cacheWrite1hTokens: long = 0 } = usage
  const sum =
    BigInt(usage.inputTokens - read - written) * at.input +
    BigInt(read) * at.read +
    BigInt(written - long) * at.write +
    BigInt(long) * at.write1h +
    BigInt(usage.outputTokens) * at.output
  return usage.serviceTier === 'flex' ? sum / 2n : usage.serviceTier === 'priority' ? sum * 2n : sum
}

/** The counts by which a recorded call is recognized among those that its provider answered. */
function totalsOf({ format, raw }: MeteredCall): readonly [number, number] | undefined {
  if (raw === undefined) return undefined
  const { usage } = raw
  const num = (name: string): number => (typeof usage[name] === 'number' ? usage[name] : 0)
  const created = usage['cache_creation'] as
    | { ephemeral_5m_input_tokens: number; ephemeral_1h_input_tokens: number }
    | undefined
  switch (format) {
    case 'openai-chat':
      return [num('prompt_tokens'), num('completion_tokens')]
    case 'openai-responses':
      return [num('input_tokens'), num('output_tokens')]
    case 'anthropic-messages': {
      const written = created!.ephemeral_5m_input_tokens + created!.ephemeral_1h_input_tokens
      return [num('input_tokens') + num('cache_read_input_tokens') + written, num('output_tokens')]
    }
    default:
      return [
        num('promptTokenCount') + num('toolUsePromptTokenCount'),
        num('candidatesTokenCount') + num('thoughtsTokenCount'),
      ]
  }
}

const seen = { counted: 0, estimated: 0, unknown: 0, severalCalls: 0, cut: 0, left: 0, total: 0n }

/** Compares one record with what its providers wrote. */
function check(record: RequestRecord, { isFused, hasLeft }: Sent): void {
  const made = [...(providers.calls.get(uuidOf(record.id)) ?? [])]
  providers.calls.delete(uuidOf(record.id))
  const about = JSON.stringify({ record, made })
  const calls = callsOf(record)
  if (record.attempts.length > 1) seen.severalCalls++
  if (hasLeft) seen.left++
  let sum: bigint | undefined = 0n
  for (const call of calls) {
    const { usage } = call
    let cost: bigint | undefined
    if (usage.source === 'counted') {
      const at = made.findIndex((one) => {
        const totals = totalsOf(one)
        return one.backend === call.backend && totals?.[0] === usage.inputTokens && totals[1] === usage.outputTokens
      })
      expect(at, about).toBeGreaterThanOrEqual(0)
      const [answered] = made.splice(at, 1)
      cost = recomputed(answered!.format, answered!.raw!, tariffOf(call.backend))
      seen.counted++
    } else {
      const at = made.findIndex(
        ({ backend, end, raw }) =>
          backend === call.backend &&
          end !== 'rejected' &&
          (end !== 'whole' || raw === undefined || hasLeft || isFused),
      )
      expect(at, about).toBeGreaterThanOrEqual(0)
      const [cut] = made.splice(at, 1)
      // The input of a stream of messages is known from its start.
      if (cut!.format === 'anthropic-messages' && cut!.raw !== undefined && cut!.end !== 'whole')
        expect(usage.inputTokens, about).toBe(totalsOf(cut!)![0])
      if (cut!.end !== 'whole') seen.cut++
      cost = estimated(call)
      seen.estimated++
    }
    expect(call.costUsd === null ? undefined : amountOf(call.costUsd!), about).toBe(cost)
    sum = sum === undefined || cost === undefined ? undefined : sum + cost
  }
  if (sum === undefined) seen.unknown++
  else seen.total += sum
  expect(record.cost === undefined ? undefined : amountOf(record.cost.usd), about).toBe(sum)
  if (calls.some(({ usage }) => usage.source === 'estimated') && sum !== undefined)
    expect(record.cost?.estimated, about).toBe(true)
  // Every call that a provider began to answer is on the bill.
  if (!hasLeft && !isFused)
    expect(
      made.filter(({ end }) => end !== 'rejected'),
      about,
    ).toEqual([])
}

async function checkMany(count: number, profileOf: () => string, workers: number): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (next < count) {
        const sent = await send(next++, profileOf())
        check(await recordOf(sent), sent)
      }
    }),
  )
}

test(
  'the bill recomputed from raw usage equals ours to the last picodollar: whole, streamed, cut, failed over',
  { timeout: 1_700_000 },
  async () => {
    const profiles = [...backends.map((id) => `one/${id}`), ...formats.map((format) => `two/${format}`)]
    await checkMany(answers, () => dice.pick(profiles), atOnce)
    if (isLongRun) console.log('bills', answers, { ...seen, total: seen.total.toString() })
    expect(seen.counted).toBeGreaterThan(answers * 0.6)
    expect(seen.cut).toBeGreaterThan(answers * 0.01)
    expect(seen.severalCalls).toBeGreaterThan(answers * 0.01)
    expect(seen.left).toBeGreaterThan(0)
    expect(seen.unknown).toBeGreaterThan(0)
  },
)

test('the bill of a fusion is that of all its calls', { timeout: 1_700_000 }, async () => {
  const before = { ...seen }
  await checkMany(fusions, () => 'svc-router/fusion', 2)
  if (isLongRun) console.log('bills of fusions', fusions, { ...seen, total: seen.total.toString() })
  expect(seen.counted - before.counted).toBeGreaterThan(fusions)
})

test('the check itself notices one token more', () => {
  const raw = { usage: { prompt_tokens: 10, completion_tokens: 5 } }
  const more = { usage: { prompt_tokens: 10, completion_tokens: 6 } }
  const tariff = tariffOf('openai-chat-1')
  expect(recomputed('openai-chat', more, tariff)! - recomputed('openai-chat', raw, tariff)!).toBe(15_000_000n)
})
