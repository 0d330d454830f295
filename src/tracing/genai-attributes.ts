import type { Usage } from '../domain/conversation.ts'
import { completionsFormatId, embeddingsFormatId } from '../domain/format-id.ts'
import type { RequestOpening, RequestOutcome } from '../domain/requests.ts'
import type { Attempt } from '../domain/upstream.ts'
import type { Backend } from '../gateway/ports.ts'

/**
 * Names of OpenTelemetry's semantic conventions for generative AI (status: development), and our own below
 * `svc_router.`. No attribute contains a prompt, an answer, a key, or an account (contract 28.1, 28.14).
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** The provider of each configured backend: a preset of `providers/registry.ts`. */
export type KnownBackends = Pick<ReadonlyMap<string, string>, 'get'>

const serviceName = 'svc-router'
/** Stands for every backend that an account connected. */
const accountBackend = 'account'

/** The well-known values of `gen_ai.provider.name`; other presets keep their names. */
const providerNames: ReadonlyMap<string, string> = new Map([
  ['azure-openai', 'azure.ai.openai'],
  ['bedrock', 'aws.bedrock'],
  ['gemini', 'gcp.gemini'],
  ['vertex', 'gcp.vertex_ai'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
])

/** `gen_ai.operation.name`. */
export function operationOf(format: string): string {
  if (format === embeddingsFormatId) return 'embeddings'
  return format === completionsFormatId ? 'text_completion' : 'chat'
}

export function requestAttributes({ id, format, profile, stream }: RequestOpening): Attributes {
  return {
    'gen_ai.operation.name': operationOf(format),
    'gen_ai.provider.name': serviceName,
    'gen_ai.request.model': profile,
    ...(stream ? { 'gen_ai.request.stream': true } : {}),
    'svc_router.request.id': id,
    'svc_router.request.format': format,
  }
}

export function outcomeAttributes({ stream }: RequestOpening, outcome: RequestOutcome): Attributes {
  const { errorCode, usage, firstContentMs, charged, attempts } = outcome
  return {
    ...usageAttributes(usage),
    ...(stream && firstContentMs !== undefined ? { 'gen_ai.response.time_to_first_chunk': firstContentMs / 1000 } : {}),
    ...(errorCode === undefined ? {} : { 'error.type': errorCode }),
    'svc_router.charged_units': charged,
    'svc_router.attempts': attempts.length,
  }
}

export interface TracedCall {
  readonly opening: RequestOpening
  readonly backend: Backend
  /** Undefined if the attempt was never recorded. */
  readonly record: Attempt | undefined
  /** Whether the answer broke off after its first content. */
  readonly isBroken: boolean
  readonly usage: Usage | undefined
}

/** `model` is undefined for a backend that an account connected: its names are the account's. */
export function attemptAttributes(
  backends: KnownBackends,
  { opening, backend, record, isBroken, usage }: TracedCall,
): { readonly model: string | undefined; readonly attributes: Attributes } {
  const preset = backends.get(backend.id)
  const model = preset === undefined ? undefined : backend.model
  const outcome = record?.outcome ?? 'cancelled'
  const errorType = isBroken ? 'broken_answer' : outcome === 'answered' ? undefined : outcome
  return {
    model,
    attributes: {
      'gen_ai.operation.name': operationOf(opening.format),
      'gen_ai.provider.name': preset === undefined ? accountBackend : (providerNames.get(preset) ?? preset),
      ...(model === undefined ? {} : { 'gen_ai.request.model': model }),
      ...(opening.stream ? { 'gen_ai.request.stream': true } : {}),
      ...(outcome === 'answered' ? usageAttributes(usage) : {}),
      ...(opening.stream && record?.outcome === 'answered'
        ? { 'gen_ai.response.time_to_first_chunk': record.ms / 1000 }
        : {}),
      ...(record?.status === undefined ? {} : { 'http.response.status_code': record.status }),
      ...(errorType === undefined ? {} : { 'error.type': errorType }),
      'svc_router.backend': preset === undefined ? accountBackend : backend.id,
    },
  }
}

function usageAttributes(usage: Usage | undefined): Attributes {
  if (usage === undefined) return {}
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
    ...(usage.cachedTokens > 0 ? { 'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens } : {}),
    ...(usage.reasoningTokens > 0 ? { 'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens } : {}),
  }
}
