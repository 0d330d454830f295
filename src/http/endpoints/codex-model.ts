import type { ModelFacts } from '../../domain/model-facts.ts'
import type { Profile } from '../../domain/profiles.ts'

/**
 * The context window assumed for Codex if a profile's backends declare none: the smallest of today's frontier models.
 */
const assumedContextWindow = 200_000

/**
 * One entry of the list that Codex parses. It requires every one of these fields, so unknown values are assumed here.
 */
export function codexModel({ id, description }: Profile, index: number, facts: ModelFacts): object {
  const { contextWindow = assumedContextWindow, capabilities = {} } = facts
  const efforts = capabilities.reasoning === false ? [] : ['low', 'medium', 'high']
  return {
    slug: id,
    display_name: displayName(id),
    description,
    default_reasoning_level: efforts[1] ?? null,
    supported_reasoning_levels: efforts.map((effort) => ({ effort, description: effort })),
    shell_type: 'unified_exec',
    visibility: 'list',
    supported_in_api: true,
    priority: index + 1,
    availability_nux: null,
    upgrade: null,
    base_instructions: 'You are a coding agent that works in the terminal of the person who runs you.',
    supports_reasoning_summaries: efforts.length > 0,
    default_reasoning_summary: 'none',
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: 'freeform',
    truncation_policy: { mode: 'tokens', limit: 10_000 },
    supports_parallel_tool_calls: true,
    context_window: contextWindow,
    max_context_window: contextWindow,
    effective_context_window_percent: 95,
    experimental_supported_tools: [],
    input_modalities: capabilities.image_input === false ? ['text'] : ['text', 'image'],
  }
}

/** A profile's display name. */
export function displayName(id: string): string {
  return id.replace('/', ' ')
}
