import type { Conversation, Hints, Sampling, Tool, Usage } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import type { Draft } from '../fields.ts'
import { shownModel, type AnswerContext } from '../format.ts'
import { writeServiceTier } from '../openai/service-tier.ts'
import { writeUsage } from './usage.ts'
import { writeOutputFormat, writeToolChoice } from './write-request.ts'

/** The progress of an answer. `completedAt` is in Unix seconds. */
export interface ResponseState {
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly output: readonly Json[]
  readonly completedAt?: number
  readonly usage?: Usage
  readonly incompleteReason?: 'max_output_tokens' | 'content_filter'
  readonly error?: { readonly code: string; readonly message: string }
  /** Our report on how the answer was produced, if any. */
  readonly report?: JsonObject
}

/** The response object with all of its fields, including those that repeat the request. */
export function responseObject(id: string, context: AnswerContext, state: ResponseState): JsonObject {
  const { conversation, createdAt } = context
  return {
    id,
    object: 'response',
    created_at: createdAt,
    completed_at: state.completedAt ?? null,
    status: state.status,
    background: context.isBackground === true,
    error: state.error === undefined ? null : { ...state.error },
    incomplete_details: state.incompleteReason === undefined ? null : { reason: state.incompleteReason },
    model: shownModel(context),
    output: state.output,
    ...repeatHints(conversation.hints),
    previous_response_id: context.previousResponseId ?? null,
    ...(context.conversationId !== undefined && { conversation: { id: context.conversationId } }),
    store: context.isStored,
    ...repeatSampling(conversation.sampling),
    ...repeatChoices(conversation),
    ...writeServiceTier(state.usage),
    usage: state.usage === undefined ? null : writeUsage(state.usage),
    ...(state.report !== undefined && { svc_router: state.report }),
  }
}

function repeatHints(hints: Hints): JsonObject {
  const repeated: Draft<JsonObject> = {
    instructions: hints.instructions ?? null,
    prompt_cache_key: hints.promptCacheKey ?? null,
    safety_identifier: hints.safetyIdentifier ?? null,
    service_tier: hints.serviceTier ?? 'default',
    truncation: hints.truncation ?? 'disabled',
    max_tool_calls: hints.maxToolCalls ?? null,
    metadata: hints.metadata ?? {},
  }
  // Absent if the request did not have it: clients do not expect null.
  if (hints.user !== undefined) repeated['user'] = hints.user
  return repeated
}

function repeatSampling(sampling: Sampling): JsonObject {
  return {
    max_output_tokens: sampling.maxOutputTokens ?? null,
    temperature: sampling.temperature ?? 1,
    top_logprobs: sampling.topLogprobs ?? 0,
    top_p: sampling.topP ?? 1,
    presence_penalty: sampling.presencePenalty ?? 0,
    frequency_penalty: sampling.frequencyPenalty ?? 0,
  }
}

function repeatChoices({
  reasoning,
  outputFormat,
  toolChoice,
  tools,
  parallelToolCalls,
  hints,
}: Conversation): JsonObject {
  const format = outputFormat === undefined ? { type: 'text' } : writeOutputFormat(outputFormat)
  return {
    parallel_tool_calls: parallelToolCalls ?? true,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    text: hints.verbosity === undefined ? { format } : { format, verbosity: hints.verbosity },
    tool_choice: toolChoice === undefined ? 'auto' : writeToolChoice(toolChoice, tools),
    tools: repeatTools(tools),
  }
}

/** Only plain functions are repeated: clients support no other kind there. */
function repeatTools(tools: readonly Tool[]): JsonObject[] {
  const repeated: JsonObject[] = []
  for (const tool of tools) {
    if (tool.type !== 'function' || tool.namespace !== undefined) continue
    repeated.push({
      type: 'function',
      name: tool.name,
      description: tool.description ?? null,
      parameters: tool.parameters ?? null,
      strict: tool.strict ?? null,
    })
  }
  return repeated
}
