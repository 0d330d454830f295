import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { WriteTarget } from '../format.ts'

/**
 * What a model accepts in this format, which differs between generations of Claude. Each trait prevents a 400 that the
 * caller could not avoid, since the caller does not know which model answers (contract 11.13).
 */
export interface ModelTraits {
  /** The `max_tokens` to send if the caller set none, because this format requires one. */
  readonly maxTokens: number
  /** Whether `temperature`, `top_p` and `top_k` are accepted: not since Claude Opus 4.7. */
  readonly samples: boolean
  /** How thinking is requested: by effort since 4.6, by a token budget before that, and not at all before 3.7. */
  readonly thinking: 'adaptive' | 'budget' | 'never'
  /** Whether `xhigh` and `max` are valid efforts. */
  readonly highestEfforts: boolean
  /** Whether an answer can be constrained to a JSON schema. */
  readonly structured: boolean
  /** Whether a tool call can be forced: not since 5.1, except on small models. */
  readonly forcedTools: boolean
  /** Whether `system` messages may appear between other messages. Otherwise they are put into the user's message. */
  readonly systemTurns: boolean
  /** Whether the prompt is only cached up to marks (contract 44.2). */
  readonly cacheMarks: boolean
  /** The number of tokens below which a prompt is never cached. */
  readonly cacheMinimum: number
}

/** Every Claude since 4 can write this much, and Claude Code requests this much (contract 11.14). */
const usualMaxTokens = 32_000
const olderMaxTokens = 4_096

/** Traits of most other vendors' models that use this format. */
const others: ModelTraits = {
  maxTokens: usualMaxTokens,
  samples: true,
  thinking: 'budget',
  highestEfforts: false,
  structured: true,
  forcedTools: true,
  systemTurns: false,
  cacheMarks: false,
  cacheMinimum: 1_024,
}

/**
 * `claude-opus-4-8`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku`: the family is before the
 * number or after it.
 */
const claudeName = /claude-(?:([a-z]+)-)?(\d+)(?:[-.](\d{1,2})(?!\d))?/

/** Models whose traits are remembered: reading a name takes longer than looking it up. */
const maxRemembered = 200
const traitsByModel = new BoundedMap<string, ModelTraits>(maxRemembered)

/** The traits of a model by its name at the provider. A Claude without a number in its name counts as a current one. */
export function traitsOf(model: string): ModelTraits {
  let traits = traitsByModel.get(model)
  if (traits === undefined) traitsByModel.set(model, (traits = readTraits(model)))
  return traits
}

function readTraits(model: string): ModelTraits {
  const name = model.toLowerCase()
  if (!name.includes('claude')) return others
  const [, family = '', major = '', minor = '0'] = claudeName.exec(name) ?? []
  const version = major === '' ? Infinity : Number(major) + Number(minor) / 100
  return {
    maxTokens: version < 4 ? olderMaxTokens : usualMaxTokens,
    samples: version < 4.07,
    thinking: version >= 4.06 ? 'adaptive' : version >= 3.07 ? 'budget' : 'never',
    highestEfforts: version >= 4.07,
    structured: version >= 4.05 || (family === 'opus' && version >= 4.01),
    forcedTools: version < 5.01 || family === 'haiku',
    systemTurns: (family === 'opus' && version >= 4.08) || (isLargest(family) && version >= 5.01),
    cacheMarks: true,
    cacheMinimum: cacheMinimumOf(family, version),
  }
}

/** The traits of a request's model at its backend: one that rejects marks gets none, as if the model took none. */
export function traitsFor({ model, dialect }: WriteTarget): ModelTraits {
  const traits = traitsOf(model)
  return dialect.refusedFields.includes('cache_control') ? { ...traits, cacheMarks: false } : traits
}

function isLargest(family: string): boolean {
  return family === 'fable' || family === 'mythos'
}

function cacheMinimumOf(family: string, version: number): number {
  if (version === Infinity) return 512
  if (family === 'haiku') return version >= 5 ? 512 : version >= 4.05 ? 4_096 : 2_048
  if (isLargest(family) || (family === 'opus' && version >= 5)) return 512
  if (family !== 'opus' || version >= 4.08 || version < 4.05) return 1_024
  return version >= 4.07 ? 2_048 : 4_096
}
