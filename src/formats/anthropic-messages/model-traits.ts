/**
 * What a model takes of this format, which differs between the generations of Claude: each was the cause of a 400 that
 * the caller could not have avoided, for the caller does not know which model answers.
 */
export interface ModelTraits {
  /** What `max_tokens` is where the caller named none, for here it must be named. */
  readonly maxTokens: number
  /** Whether `temperature`, `top_p` and `top_k` are taken: not since Claude Opus 4.7. */
  readonly samples: boolean
  /** How it is told to think: by effort since 4.6, before by a budget of tokens; not at all before 3.7. */
  readonly thinking: 'adaptive' | 'budget' | 'never'
  /** Whether `xhigh` and `max` are efforts. */
  readonly highestEfforts: boolean
  /** Whether an answer can be held to a JSON schema. */
  readonly structured: boolean
  /** Whether it can be made to call a tool: not since 5.1, but for the small ones. */
  readonly forcedTools: boolean
  /** Whether `system` messages may stand between the others. Where that is not known they are moved to the top. */
  readonly systemTurns: boolean
}

/** Every Claude since 4 writes as much; Claude Code asks for as much. */
const usualMaxTokens = 32_000
const olderMaxTokens = 4_096

/** Models of other makers who speak this format, as most of them do it. */
const others: ModelTraits = {
  maxTokens: usualMaxTokens,
  samples: true,
  thinking: 'budget',
  highestEfforts: false,
  structured: true,
  forcedTools: true,
  systemTurns: false,
}

/** `claude-opus-4-8`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku`: family before the number, or behind it. */
const claudeName = /claude-(?:([a-z]+)-)?(\d+)(?:[-.](\d{1,2})(?!\d))?/

/** The traits of a model by its name at the provider. A Claude whose name has no number is taken for a current one. */
export function traitsOf(model: string): ModelTraits {
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
    systemTurns: family === 'opus' && version >= 4.08,
  }
}
