import type { Usage } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'

/** Names of service tiers in OpenAI's formats. */
const tiers: ReadonlySet<string> = new Set(['flex', 'priority', 'scale'])

/** The member `service_tier` of an answer; empty if it is the usual one, or unknown to OpenAI's formats. */
export function writeServiceTier(usage: Usage | undefined): JsonObject {
  const tier = usage?.serviceTier
  return tier !== undefined && tiers.has(tier) ? { service_tier: tier } : {}
}
