import type { Conversation } from '../domain/conversation.ts'
import { readProviderError } from '../domain/provider-error.ts'
import { UpstreamError, type AttemptOutcome, type UpstreamTest } from '../domain/upstream.ts'
import { parseAnswer, classifyRejection } from '../formats/answer-faults.ts'
import { formatById } from '../formats/formats.ts'
import type { Backend, UpstreamHead } from '../gateway/ports.ts'
import type { Clock } from '../runtime/clock.ts'

/**
 * A local server may have to load the model first: if the backend's first content may take longer, the test may too.
 */
const limitMs = 20_000
const patientLimitMs = 60_000
const maxTokens = 16
const maxAnswerBytes = 1024 * 1024

/** The smallest possible request. */
const question: Conversation = {
  profile: '',
  stream: false,
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'Answer with the word OK.' }] }],
  tools: [],
  sampling: { maxOutputTokens: maxTokens },
  streamUsage: false,
  hints: { store: false },
}

/**
 * Tests a backend with a request for at most 16 tokens, within 20 s, or 60 s if its first content may take longer than
 * that, and reports the result. The request is written and the answer read as for clients' requests, so that what
 * passes here works there (contract 21.3). Never throws because of the provider.
 */
export function testUpstream(backend: Backend, parts: { clock: Clock; requestId: string }): Promise<UpstreamTest> {
  const { clock, requestId } = parts
  const { model, dialect } = backend
  const body = JSON.stringify(formatById(backend.format).writeRequest(question, { model, stream: false, dialect }))
  const startedAtMs = clock.monotonicMs()
  const withinMs = backend.timeouts.firstContentMs > patientLimitMs ? patientLimitMs : limitMs
  return new Promise((resolve, reject) => {
    let head: UpstreamHead | undefined
    let bytes = 0
    const chunks: Buffer[] = []
    const finish = (outcome: AttemptOutcome, reason?: string): void => {
      timer.cancel()
      const ms = Math.round(clock.monotonicMs() - startedAtMs)
      resolve({
        outcome,
        ms,
        ...(head === undefined ? undefined : { status: head.status }),
        ...(reason === undefined ? undefined : { reason }),
      })
    }
    const timer = clock.after(withinMs, () => {
      call.abort()
      finish('timeout')
    })
    const call = backend.call(
      { body, stream: false, requestId },
      {
        onHead(received) {
          head = received
        },
        onData(chunk) {
          bytes += chunk.length
          if (bytes <= maxAnswerBytes) chunks.push(Buffer.from(chunk))
          else {
            call.abort()
            finish('broken')
          }
        },
        onEnd() {
          const text = Buffer.concat(chunks).toString('utf8')
          try {
            readAnswer(backend, head, text)
            finish('answered')
          } catch (error) {
            if (error instanceof UpstreamError) return finish(error.outcome, readProviderError(text))
            timer.cancel()
            reject(error instanceof Error ? error : new Error('The answer could not be read.'))
          }
        },
        onError: (error) => finish(error.outcome),
      },
    )
  })
}

/** @throws UpstreamError if it is an error, or not a complete answer */
function readAnswer(backend: Backend, head: UpstreamHead | undefined, text: string): void {
  if (head === undefined) throw new UpstreamError('broken')
  if (head.status < 200 || head.status > 299) throw classifyRejection(head, text)
  const events = formatById(backend.format).readAnswer().readWhole(parseAnswer(text))
  if (!events.some(({ type }) => type === 'finish')) throw new UpstreamError('broken')
}
