import type { FormatId } from '../../../src/domain/format-id.ts'
import type { RawUsage } from './raw-usage.ts'

/**
 * What a provider would write on its bill, computed from its own counts, with none of the product's code: one sum per
 * format, in picodollars. Prices are in microdollars per million tokens.
 */
export interface Tariff {
  readonly input: bigint
  readonly output: bigint
  readonly read: bigint
  readonly write: bigint
  readonly write1h: bigint
  readonly audioInput: bigint
  readonly audioOutput: bigint
  /** Of requests with more than 200,000 input tokens. */
  readonly long: {
    readonly input: bigint
    readonly output: bigint
    readonly read: bigint
    readonly write: bigint
    readonly write1h: bigint
  }
}

/** Prices are even, so that half of one is a whole number. */
const halves: Readonly<Record<string, bigint>> = { flex: 1n, default: 2n, standard: 2n, priority: 4n }
const longAbove = 200_000

type Members = Readonly<Record<string, unknown>>
const num = (value: unknown): bigint => (typeof value === 'number' ? BigInt(value) : 0n)
const sub = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})

const nameIn = (value: unknown): string => (typeof value === 'string' ? value : 'default')

/** Undefined if a price is missing: none of these tariffs has one for web searches. */
export function recomputed(format: FormatId, { usage, beside = {} }: RawUsage, tariff: Tariff): bigint | undefined {
  switch (format) {
    case 'openai-chat':
      return chatBill(usage, nameIn(beside['service_tier']), tariff)
    case 'openai-responses':
      return responsesBill(usage, nameIn(beside['service_tier']), tariff)
    case 'anthropic-messages':
      return messagesBill(usage, tariff)
    default:
      return geminiBill(usage, tariff)
  }
}

function chatBill(usage: Members, tier: string, tariff: Tariff): bigint {
  if (typeof usage['cost_in_usd_ticks'] === 'number') return num(usage['cost_in_usd_ticks']) * 100n
  // These have seven decimals.
  if (typeof usage['cost'] === 'number') return BigInt(Math.round(usage['cost'] * 1e7)) * 100_000n
  const input = sub(usage['prompt_tokens_details'])
  const reads = [input['cached_tokens'], usage['prompt_cache_hit_tokens'], usage['cached_tokens']].map(num)
  const read = reads.reduce((most, count) => (count > most ? count : most), 0n)
  const write = num(input['cache_write_tokens'])
  const heard = num(input['audio_tokens'])
  const spoken = num(sub(usage['completion_tokens_details'])['audio_tokens'])
  const total = num(usage['prompt_tokens'])
  const at =
    total > longAbove
      ? { ...tariff, ...tariff.long, audioInput: tariff.long.input, audioOutput: tariff.long.output }
      : tariff
  const fresh = total - read - write - heard
  const sum =
    fresh * at.input +
    read * at.read +
    write * at.write +
    heard * at.audioInput +
    (num(usage['completion_tokens']) - spoken) * at.output +
    spoken * at.audioOutput
  return (sum * halves[tier]!) / 2n
}

function responsesBill(usage: Members, tier: string, tariff: Tariff): bigint {
  const details = sub(usage['input_tokens_details'])
  const [read, write] = [num(details['cached_tokens']), num(details['cache_write_tokens'])]
  const at = num(usage['input_tokens']) > longAbove ? tariff.long : tariff
  const sum =
    (num(usage['input_tokens']) - read - write) * at.input +
    read * at.read +
    write * at.write +
    num(usage['output_tokens']) * at.output
  return (sum * halves[tier]!) / 2n
}

function messagesBill(usage: Members, tariff: Tariff): bigint | undefined {
  if (num(sub(usage['server_tool_use'])['web_search_requests']) > 0n) return undefined
  const created = sub(usage['cache_creation'])
  const [short, long] = [num(created['ephemeral_5m_input_tokens']), num(created['ephemeral_1h_input_tokens'])]
  const read = num(usage['cache_read_input_tokens'])
  const rest = num(usage['input_tokens'])
  const at = rest + read + short + long > longAbove ? tariff.long : tariff
  const sum =
    rest * at.input + read * at.read + short * at.write + long * at.write1h + num(usage['output_tokens']) * at.output
  return (sum * halves[nameIn(usage['service_tier'])]!) / 2n
}

function geminiBill(usage: Members, tariff: Tariff): bigint {
  const heardIn = (list: unknown): bigint =>
    ((list ?? []) as readonly Members[]).reduce(
      (sum, one) => sum + (one['modality'] === 'AUDIO' ? num(one['tokenCount']) : 0n),
      0n,
    )
  const total = num(usage['promptTokenCount']) + num(usage['toolUsePromptTokenCount'])
  const read = num(usage['cachedContentTokenCount'])
  const at = total > longAbove ? { ...tariff, ...tariff.long, audioInput: tariff.long.input } : tariff
  const heardBefore = heardIn(usage['cacheTokensDetails'])
  // What was heard and not read from the cache, as far as that much of the input was not.
  const fresh = total - read
  const heardNew = heardIn(usage['promptTokensDetails']) - heardBefore
  const heard = heardNew > fresh ? fresh : heardNew
  const sum =
    (fresh - heard) * at.input +
    heard * at.audioInput +
    read * at.read +
    (num(usage['candidatesTokenCount']) + num(usage['thoughtsTokenCount'])) * at.output
  const tier = nameIn(usage['trafficType'])
    .replace(/^ON_DEMAND_?/, '')
    .toLowerCase()
  return (sum * halves[tier === '' ? 'default' : tier]!) / 2n
}
