import { verdictIn } from '../../domain/cache-verdict.ts'
import type { Usage } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import type { CostRecord } from '../../domain/request-cost.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import type { SessionCost } from '../../domain/session-costs.ts'
import type { Attempt } from '../../domain/upstream.ts'

type ModelOf = (backendId: string) => string | undefined

/** A request as its account reads it: figures and names, and no text (contract 43.2). `session` is that of the request. */
export function plainRequest(record: RequestRecord, modelOf: ModelOf, session?: SessionCost): JsonObject {
  const { attempts, usage, cost, fusions, passedBy = [] } = record
  const answered = attempts.findLast(({ outcome }) => outcome === 'answered')
  const backend = fusions === undefined ? answered?.backend : 'fusion'
  const cache = verdictIn(attempts)
  return {
    object: 'request',
    id: record.id,
    created_at: new Date(record.admittedAtMs).toISOString(),
    key: record.keyId,
    profile: record.profile,
    format: record.format,
    stream: record.stream,
    status: record.state,
    error: record.errorCode ?? null,
    backend: backend ?? null,
    model: (answered && fusions === undefined ? modelOf(answered.backend) : undefined) ?? null,
    attempts: attempts.map((attempt) => plainAttempt(attempt, modelOf)),
    skipped: passedBy.map((skipped) => ({ backend: skipped.backend, reason: skipped.reason })),
    usage: usage === undefined ? null : plainUsage(usage),
    cost: cost === undefined ? null : plainCost(cost),
    ...(cache === undefined ? {} : { cache: cache as unknown as Json }),
    session: session === undefined ? null : plainSession(session),
    quota_units: record.charged,
    first_content_ms: record.firstContentMs ?? null,
    total_ms: record.totalMs,
  }
}

function plainAttempt(attempt: Attempt, modelOf: ModelOf): JsonObject {
  const { backend, outcome, status, ms, refused, rescued, usage, costUsd } = attempt
  return {
    backend,
    model: modelOf(backend) ?? null,
    outcome,
    ...(status === undefined ? {} : { status }),
    ms,
    ...(refused === undefined ? {} : { refused }),
    ...(rescued === undefined ? {} : { rescued }),
    ...(usage === undefined ? {} : { usage: plainUsage(usage), cost_usd: costUsd ?? null }),
  }
}

function plainUsage(usage: Usage): JsonObject {
  const optional = {
    cache_write_1h_tokens: usage.cacheWrite1hTokens,
    audio_input_tokens: usage.audioInputTokens,
    audio_output_tokens: usage.audioOutputTokens,
    image_input_tokens: usage.imageInputTokens,
    image_output_tokens: usage.imageOutputTokens,
    web_searches: usage.webSearches,
    service_tier: usage.serviceTier,
    region: usage.region,
  }
  return {
    input_tokens: usage.inputTokens,
    cached_tokens: usage.cachedTokens,
    cache_write_tokens: usage.cacheWriteTokens ?? 0,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    estimated: usage.source === 'estimated',
    ...Object.fromEntries(
      Object.entries(optional).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
  }
}

/** What its session cost so far (contract 42.13). */
function plainSession({ session, requests, priced, usd, savedUsd }: SessionCost): JsonObject {
  return {
    id: session,
    requests,
    requests_with_unknown_cost: requests - priced,
    cost_usd: priced === 0 ? null : usd,
    cache_saved_usd: priced === 0 ? null : savedUsd,
  }
}

function plainCost({ usd, savedUsd, estimated, prices }: CostRecord): JsonObject {
  return { usd, cache_saved_usd: savedUsd ?? null, estimated: estimated === true, prices: prices ?? null }
}
