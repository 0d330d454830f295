import { createHash } from 'node:crypto'
import type { JsonObject } from '../../domain/json.ts'

export const bytesPerToken = 4

/** What a provider charges for the input of one request. The parts are disjoint. */
export interface CacheReport {
  readonly newTokens: number
  readonly readTokens: number
  readonly written5mTokens: number
  readonly written1hTokens: number
}

/** A request that the provider answers with 400, and why. */
export interface CacheRejection {
  readonly rejected: string
}

/** When a request arrives, epoch milliseconds. */
export interface AskedAt {
  readonly nowMs: number
  /** How long the answer takes to begin: what it stores can be read from then on. Default 0. */
  readonly firstByteMs?: number
}

/** The prompt cache of one simulated provider, for one workspace. It follows the provider's published rules. */
export interface SimulatedCache {
  ask(body: JsonObject, at: AskedAt): CacheReport | CacheRejection
}

export function isRejected(answer: CacheReport | CacheRejection): answer is CacheRejection {
  return 'rejected' in answer
}

/** All input of a request. */
export function inputOf({ newTokens, readTokens, written5mTokens, written1hTokens }: CacheReport): number {
  return newTokens + readTokens + written5mTokens + written1hTokens
}

/** A digest that continues another one. */
export function chain(before: string, ...parts: readonly string[]): string {
  const hash = createHash('sha256').update(before)
  for (const part of parts) hash.update(`\n${part.length} `).update(part)
  return hash.digest('base64url')
}
