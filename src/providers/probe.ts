import type { Clock } from '../domain/clock.ts'
import type { JsonObject } from '../domain/conversation.ts'
import type { AttemptOutcome } from '../domain/upstream.ts'
import type { FormatId } from '../formats/format.ts'
import type { Backend, UpstreamHead } from '../gateway/ports.ts'

const limitMs = 20_000
const maxTokens = 16
const maxAnswerBytes = 1024 * 1024
const longestModel = 128

/** What a test call found. `status` is the provider's, `model` what it says that it runs. */
export interface UpstreamTest {
  readonly ok: boolean
  readonly outcome: AttemptOutcome
  readonly status: number | undefined
  readonly ms: number
  readonly model: string | undefined
}

const question = 'Answer with the word OK.'

/** The smallest request of each format, and how its answer is known. */
const tests = {
  'openai-chat': {
    body: (backend: Backend): JsonObject => ({
      model: backend.model,
      messages: [{ role: 'user', content: question }],
      [backend.dialect.maxTokensField]: maxTokens,
      stream: false,
    }),
    isAnswer: (body: JsonObject) => Array.isArray(body.choices) && body.choices.length > 0,
  },
  'openai-responses': {
    body: (backend: Backend): JsonObject => ({
      model: backend.model,
      input: question,
      max_output_tokens: maxTokens,
      store: false,
      stream: false,
    }),
    isAnswer: (body: JsonObject) => Array.isArray(body.output),
  },
} as const satisfies Record<FormatId, { body(backend: Backend): JsonObject; isAnswer(body: JsonObject): boolean }>

/** Asks a backend for at most 16 tokens within 20 s and says what came back; never throws for what the provider does. */
export function testUpstream(backend: Backend, parts: { clock: Clock; requestId: string }): Promise<UpstreamTest> {
  const { clock, requestId } = parts
  const { body, isAnswer } = tests[backend.format]
  const startedAtMs = clock.nowMs()
  return new Promise((resolve) => {
    let head: UpstreamHead | undefined
    let bytes = 0
    const chunks: Buffer[] = []
    const finish = (outcome: AttemptOutcome, model?: string): void => {
      timer.cancel()
      resolve({
        ok: outcome === 'answered',
        outcome,
        status: head?.status,
        ms: Math.round(clock.nowMs() - startedAtMs),
        model,
      })
    }
    const timer = clock.after(limitMs, () => {
      call.abort()
      finish('timeout')
    })
    const call = backend.call(
      { body: JSON.stringify(body(backend)), stream: false, requestId },
      {
        onHead(received) {
          head = received
        },
        onData(chunk) {
          bytes += chunk.length
          if (bytes <= maxAnswerBytes) chunks.push(chunk)
          else {
            call.abort()
            finish('broken')
          }
        },
        onEnd() {
          const answer = readJson(Buffer.concat(chunks))
          const failure = failureOf(head?.status ?? 0, answer)
          if (failure !== undefined) finish(failure)
          else if (answer === undefined || !isAnswer(answer)) finish('broken')
          else finish('answered', modelOf(answer))
        },
        onError: (error) => finish(error.outcome),
      },
    )
  })
}

function failureOf(status: number, answer: JsonObject | undefined): AttemptOutcome | undefined {
  if (status === 200) return undefined
  if (status === 401 || status === 403) return 'rejected_credentials'
  if (status === 429) return 'rate_limited'
  if (status === 408) return 'timeout'
  if (status < 400) return 'broken'
  if (status >= 500) return 'server_error'
  const error = answer?.error
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return code === 'context_length_exceeded' ? 'context_too_long' : 'rejected_content'
}

function readJson(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
  } catch {
    // What a provider sends instead of JSON is its category, `broken`, and nothing more.
    return undefined
  }
}

function modelOf(answer: JsonObject): string | undefined {
  const { model } = answer
  return typeof model === 'string' ? model.replace(/[^\x20-\x7e]/g, '').slice(0, longestModel) : undefined
}
