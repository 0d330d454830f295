import type { BackendTimeouts } from '../gateway/ports.ts'

/** The first content of a backend that reasons before it answers (contract 5.5). */
const reasoningFirstContentMs = 120_000

/** The limits of a backend that says nothing else (contract 5.5, docs/decisions/04). */
export function defaultTimeouts(reasoning: boolean): BackendTimeouts {
  return {
    connectMs: 2_000,
    firstContentMs: reasoning ? reasoningFirstContentMs : 30_000,
    wholeAnswerMs: 300_000,
    idleMs: 30_000,
    totalMs: 600_000,
  }
}
