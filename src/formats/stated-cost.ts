import { type Json, type JsonObject, isObject, objectOf } from '../domain/json.ts'
import { fromDollars } from '../domain/money.ts'

/** xAI counts 10¹⁰ ticks for a dollar. */
const picodollarsPerTick = 100n
/** No call costs more: a higher amount is not used. */
const mostDollars = 1_000
const maxTicks = mostDollars * 1e10

/**
 * The cost in picodollars that a provider states in its usage (contract 42.3): OpenRouter's `cost`, with what its
 * upstream charged if the caller brought the key; Perplexity's total; xAI's ticks. Undefined if it states none.
 */
export function readStatedCost(usage: JsonObject): bigint | undefined {
  const ticks = usage['cost_in_usd_ticks']
  if (typeof ticks === 'number' && ticks >= 0 && ticks <= maxTicks) return BigInt(Math.ceil(ticks)) * picodollarsPerTick
  const cost = readDollars(usage['cost'])
  if (cost === undefined || usage['is_byok'] !== true) return cost
  const upstream = fromDollars(objectOf(usage['cost_details'])['upstream_inference_cost'], mostDollars)
  return upstream === undefined ? undefined : cost + upstream
}

function readDollars(cost: Json | undefined): bigint | undefined {
  return fromDollars(isObject(cost) ? cost['total_cost'] : cost, mostDollars)
}
