import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'

/** Converts `logprobsResult` to the form of both OpenAI formats; undefined if there is none. */
export function readLogprobs(result: Json | undefined): readonly Json[] | undefined {
  if (!isObject(result)) return undefined
  const chosen = result['chosenCandidates']
  const top = result['topCandidates']
  if (!isArray(chosen) || chosen.length === 0) return undefined
  return chosen.flatMap((candidate, position) => {
    const token = readToken(candidate)
    if (token === undefined) return []
    const alternatives = isArray(top) ? top[position] : undefined
    const others = isObject(alternatives) && isArray(alternatives['candidates']) ? alternatives['candidates'] : []
    return [{ ...token, top_logprobs: others.map(readToken).filter((other) => other !== undefined) }]
  })
}

function readToken(candidate: Json): JsonObject | undefined {
  if (!isObject(candidate)) return undefined
  const { token, logProbability } = candidate
  if (typeof token !== 'string' || typeof logProbability !== 'number') return undefined
  return { token, logprob: logProbability, bytes: [...Buffer.from(token)] }
}
