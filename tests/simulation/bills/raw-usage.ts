import type { FormatId } from '../../../src/domain/format-id.ts'
import type { Dice } from '../dice.ts'

type Counts = Readonly<Record<string, unknown>>

/** Usage as a provider writes it. */
export interface RawUsage {
  readonly usage: Counts
  /** Members of the answer beside the usage. */
  readonly beside?: Counts
  /** Messages only: the usage at the end of a stream, whose start has `usage`. */
  readonly last?: Counts
}

/** Random usage in one of the spellings of a format. */
export function randomUsage(format: FormatId, dice: Dice): RawUsage {
  switch (format) {
    case 'openai-chat':
      return chatUsage(dice)
    case 'openai-responses':
      return responsesUsage(dice)
    case 'anthropic-messages':
      return messagesUsage(dice)
    default:
      return geminiUsage(dice)
  }
}

/** Mostly small, sometimes longer than the threshold of long context. */
function inputOf(dice: Dice): number {
  return 1 + dice.upTo(dice.upTo(9) === 0 ? 400_000 : 20_000)
}

function tierOf(dice: Dice): Counts {
  return dice.upTo(3) === 0 ? { service_tier: dice.pick(['flex', 'priority', 'default']) } : {}
}

function chatUsage(dice: Dice): RawUsage {
  const input = inputOf(dice)
  const output = 1 + dice.upTo(4_999)
  const base = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  const read = dice.upTo(input)
  const reasoning = { completion_tokens_details: { reasoning_tokens: dice.upTo(output) } }
  const beside = tierOf(dice)
  switch (dice.upTo(7)) {
    case 0:
      return { usage: base, beside }
    case 1:
      return { usage: { ...base, prompt_tokens_details: { cached_tokens: read }, ...reasoning }, beside }
    case 2: {
      const cache_write_tokens = dice.upTo(input - read)
      return {
        usage: { ...base, prompt_tokens_details: { cached_tokens: read, cache_write_tokens }, ...reasoning },
        beside,
      }
    }
    case 3:
      return {
        usage: {
          ...base,
          prompt_tokens_details: {},
          prompt_cache_hit_tokens: read,
          prompt_cache_miss_tokens: input - read,
        },
      }
    case 4:
      return { usage: { ...base, cached_tokens: read }, beside }
    case 5:
      return { usage: { ...base, cost_in_usd_ticks: dice.upTo(999_999_999) }, beside }
    case 6:
      return {
        usage: { ...base, cost: dice.upTo(999_999) / 10_000_000, prompt_tokens_details: { cached_tokens: read } },
      }
    default: {
      const heard = dice.upTo(input)
      const spoken = dice.upTo(output)
      return {
        usage: {
          ...base,
          prompt_tokens_details: { audio_tokens: heard },
          completion_tokens_details: { audio_tokens: spoken },
        },
      }
    }
  }
}

function responsesUsage(dice: Dice): RawUsage {
  const input = inputOf(dice)
  const output = 1 + dice.upTo(4_999)
  const read = dice.upTo(1) * dice.upTo(input)
  const cache_write_tokens = dice.upTo(1) * dice.upTo(input - read)
  return {
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: read, ...(dice.upTo(1) === 0 ? { cache_write_tokens } : {}) },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: dice.upTo(output) },
      total_tokens: input + output,
    },
    beside: tierOf(dice),
  }
}

function messagesUsage(dice: Dice): RawUsage {
  const [short, long] = [dice.upTo(2) * dice.upTo(9_999), dice.upTo(1) * dice.upTo(9_999)]
  const usage = {
    input_tokens: inputOf(dice),
    cache_read_input_tokens: dice.upTo(1) * dice.upTo(199_999),
    ...(dice.upTo(5) === 0 ? {} : { cache_creation_input_tokens: short + long }),
    cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    output_tokens: 1 + dice.upTo(4_999),
    ...(dice.upTo(3) === 0 ? { server_tool_use: { web_search_requests: dice.upTo(2) } } : {}),
    ...(dice.upTo(3) === 0 ? { service_tier: dice.pick(['flex', 'priority', 'standard']) } : {}),
  }
  const { output_tokens } = usage
  // Real streams repeat the input in their last event, omit it there, or say 0.
  const repeated = dice.pick([
    { input_tokens: usage.input_tokens, cache_read_input_tokens: usage.cache_read_input_tokens },
    {},
    { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  ])
  return { usage, last: { ...repeated, output_tokens } }
}

function geminiUsage(dice: Dice): RawUsage {
  const prompt = inputOf(dice)
  const cached = dice.upTo(1) * dice.upTo(prompt)
  const heard = dice.upTo(2) === 0 ? dice.upTo(prompt) : 0
  const heardBefore = dice.upTo(Math.min(heard, cached))
  return {
    usage: {
      promptTokenCount: prompt,
      candidatesTokenCount: 1 + dice.upTo(4_999),
      thoughtsTokenCount: dice.upTo(1) * dice.upTo(1_999),
      cachedContentTokenCount: cached,
      ...(dice.upTo(3) === 0 ? { toolUsePromptTokenCount: dice.upTo(499) } : {}),
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: prompt - heard },
        ...(heard > 0 ? [{ modality: 'AUDIO', tokenCount: heard }] : []),
      ],
      ...(heardBefore > 0 ? { cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: heardBefore }] } : {}),
      ...(dice.upTo(3) === 0 ? { trafficType: dice.pick(['ON_DEMAND', 'ON_DEMAND_FLEX', 'ON_DEMAND_PRIORITY']) } : {}),
    },
  }
}
