import type { Backend } from '../../../src/gateway/ports.ts'

/** A backend that is never called. */
export function someBackend(id: string, facts: Partial<Backend> = {}): Backend {
  return {
    id,
    failureDomain: id,
    issuer: id,
    format: 'openai-chat',
    model: `model-${id}`,
    simulated: false,
    timeouts: { connectMs: 1, headersMs: 1, firstContentMs: 1, wholeAnswerMs: 1, idleMs: 1, totalMs: 1 },
    dialect: { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] },
    call: () => {
      throw new Error('this backend is never called')
    },
    ...facts,
  }
}
