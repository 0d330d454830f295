import { rootOf, type ClientConfig } from './client-config.ts'
import { attachedToolsHeader, fusionToolType } from './profiles.ts'

/** The id of this service in the provider lists of Codex and opencode. */
const providerId = 'svc-router'
/** The context window that opencode and Claude Code assume if none is known, in tokens. */
const assumedContextTokens = 200_000
const outputTokens = 32_000

type Entry = readonly [key: string, value: string | number]

/** Codex's settings: top-level ones, and the table of our provider. */
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
      // The service already fails over. With more retries, Codex takes many requests to report a wrong key.
      ['request_max_retries', 1],
      ['stream_max_retries', 2],
      ...(hasFusionTool ? [[`http_headers.${attachedToolsHeader}`, fusionToolType] as const] : []),
    ],
  }
}

/** Without these, opencode assumes that an unknown model accepts no images, and silently drops them. */
const opencodeAbilities = {
  tool_call: true,
  attachment: true,
  modalities: { input: ['text', 'image'], output: ['text'] },
} as const

/** opencode's configuration, to merge with the user's own. It names the variable of the key. */
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

/**
 * Claude Code's variables except the key. Every tier uses the same profile, because no other model name is valid here.
 */
export function claudeVariables({ baseUrl, model }: ClientConfig): Readonly<Record<string, string>> {
  return {
    ANTHROPIC_BASE_URL: rootOf(baseUrl),
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    // Otherwise it assumes a context window of a million tokens for unknown models.
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(assumedContextTokens),
    // The service already fails over. Otherwise Claude Code silently retries ten times.
    CLAUDE_CODE_MAX_RETRIES: '2',
    // Otherwise only Anthropic's models can find the tools of MCP servers.
    ENABLE_TOOL_SEARCH: 'false',
  }
}

/** The variable of Claude Code's key, which is sent as a Bearer token. */
export const claudeKeyVariable = 'ANTHROPIC_AUTH_TOKEN'
/** Claude Code's variable for extra headers, one per line: the user's own, and ours to attach the fusion tool. */
export function claudeHeaders({ hasFusionTool = false }: ClientConfig, theirs = ''): Readonly<Record<string, string>> {
  if (!hasFusionTool) return {}
  const ours = `${attachedToolsHeader}: ${fusionToolType}`
  return { [claudeHeadersVariable]: theirs === '' ? ours : `${theirs}\n${ours}` }
}

export const claudeHeadersVariable = 'ANTHROPIC_CUSTOM_HEADERS'

/** Variables that would bypass this service: a key with precedence over ours, and other ways to reach models. */
export const claudeOtherVariables = [
  'ANTHROPIC_API_KEY',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
  'CLAUDE_CODE_USE_FOUNDRY',
]
