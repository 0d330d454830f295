import { attachedToolsHeader, fusionToolType } from './profiles.ts'
import { rootOf, type ClientConfig } from './client-config.ts'

/** The id of this service among the providers of Codex and opencode: the same wherever it is written. */
const providerId = 'svc-router'
/** What opencode and Claude Code plan with where nothing better is known, in tokens. */
const assumedContextTokens = 200_000
const outputTokens = 32_000

type Entry = readonly [key: string, value: string | number]

/** Codex's settings: those of the outermost table, and those of our provider's. */
export function codexSettings({ baseUrl, keyVariable, keyHint, model, hasFusionTool = false }: ClientConfig): {
  readonly top: readonly Entry[]
  readonly table: string
  readonly provider: readonly Entry[]
} {
  return {
    top: [
      ['model', model],
      ['model_provider', providerId],
    ],
    table: `model_providers.${providerId}`,
    provider: [
      ['name', providerId],
      ['base_url', baseUrl],
      ['env_key', keyVariable],
      ['env_key_instructions', keyHint],
      ['wire_api', 'responses'],
      // The service changes to another backend by itself: with more, a wrong key takes Codex many requests to tell.
      ['request_max_retries', 1],
      ['stream_max_retries', 2],
      ...(hasFusionTool ? [[`http_headers.${attachedToolsHeader}`, fusionToolType] as const] : []),
    ],
  }
}

/** Without them it takes a model that it does not know for one that sees nothing, and leaves images out without a word to its user. */
const opencodeAbilities = {
  tool_call: true,
  attachment: true,
  modalities: { input: ['text', 'image'], output: ['text'] },
} as const

/** opencode's configuration, to be merged with its user's own. The key is named, not held. */
export function opencodeConfig(
  { baseUrl, keyVariable, model, hasFusionTool = false }: ClientConfig,
  contextTokens: number = assumedContextTokens,
): { readonly model: string; readonly provider: Readonly<Record<string, object>> } {
  const name = model.slice(model.lastIndexOf('/') + 1)
  const limit = { context: contextTokens, output: outputTokens }
  const headers = hasFusionTool ? { headers: { [attachedToolsHeader]: fusionToolType } } : {}
  return {
    model: `${providerId}/${model}`,
    provider: {
      [providerId]: {
        npm: '@ai-sdk/openai-compatible',
        name: providerId,
        options: { baseURL: baseUrl, apiKey: `{env:${keyVariable}}`, ...headers },
        models: { [model]: { name: name.charAt(0).toUpperCase() + name.slice(1), ...opencodeAbilities, limit } },
      },
    },
  }
}

/** Claude Code's variables but for the key. Every tier is the one profile: a model of another name is not known here. */
export function claudeVariables({ baseUrl, model }: ClientConfig): Readonly<Record<string, string>> {
  return {
    ANTHROPIC_BASE_URL: rootOf(baseUrl),
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    // It would take a model that it does not know for one of a million tokens.
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(assumedContextTokens),
    // Another backend is tried here; it would try ten times more, without a word.
    CLAUDE_CODE_MAX_RETRIES: '2',
    // Else only Anthropic's models can find the tools of tool servers.
    ENABLE_TOOL_SEARCH: 'false',
  }
}

/** Claude Code's variable for the key, sent as Bearer. */
export const claudeKeyVariable = 'ANTHROPIC_AUTH_TOKEN'
/** Claude Code's variable for headers of its user, each a line, with ours among them where the fusion tool is attached. */
export function claudeHeaders({ hasFusionTool = false }: ClientConfig, theirs = ''): Readonly<Record<string, string>> {
  if (!hasFusionTool) return {}
  const ours = `${attachedToolsHeader}: ${fusionToolType}`
  return { [claudeHeadersVariable]: theirs === '' ? ours : `${theirs}\n${ours}` }
}

export const claudeHeadersVariable = 'ANTHROPIC_CUSTOM_HEADERS'

/** Would lead Claude Code past us: another key that goes before ours, and other ways to reach models. */
export const claudeOtherVariables = [
  'ANTHROPIC_API_KEY',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
  'CLAUDE_CODE_USE_FOUNDRY',
]
