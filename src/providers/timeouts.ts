import type { BackendTimeouts } from '../gateway/ports.ts'

/** Time limit for the first content of a backend that reasons before it answers (contract 9.3). */
const reasoningFirstContentMs = 120_000

/** Some providers send no headers while a model reasons. */
const reasoningHeadersMs = 30_000
/** Servers on the user's own machine queue requests, load models, and read long prompts slowly (contract 9.2, 9.3). */
const localPresets: ReadonlySet<string> = new Set(['ollama', 'vllm', 'llama-cpp', 'lm-studio'])
const localFirstContentMs = 300_000

/** The default time limits of a backend (contract 9.1-9.6, docs/decisions/04). */
export function defaultTimeouts(reasoning: boolean, preset = ''): BackendTimeouts {
  const common = { connectMs: 2_000, idleMs: 30_000, totalMs: 600_000 }
  if (localPresets.has(preset)) {
    const limits = { headersMs: localFirstContentMs, firstContentMs: localFirstContentMs }
    return { ...common, ...limits, wholeAnswerMs: common.totalMs }
  }
  return {
    ...common,
    headersMs: reasoning ? reasoningHeadersMs : 10_000,
    firstContentMs: reasoning ? reasoningFirstContentMs : 30_000,
    wholeAnswerMs: 300_000,
  }
}
