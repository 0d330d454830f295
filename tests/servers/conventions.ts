import { APIError as AnthropicError } from '@anthropic-ai/sdk'
import { APIError as OpenAIError } from 'openai'
import { chat } from './chat.ts'
import { messages } from './messages.ts'
import { BrokenOff, type Asking, type Convention, type Outcome, type Place, type Question } from './outcome.ts'
import { responses } from './responses.ts'

export const conventions: readonly Convention[] = [chat, responses, messages]
/** How a server is asked itself: all of them speak this one. */
export const direct = chat

/** The sentence in the body of a refusal, without what the SDK adds. */
function messageOf(body: unknown): { message?: string } {
  const { message } = (body ?? {}) as { message?: unknown }
  return typeof message === 'string' ? { message } : {}
}

/**
 * Asks and gives what came of it, a refusal too. @throws Error for what is neither an answer nor a failure of the
 * request
 */
export async function ask(convention: Convention, place: Place, question: Question, asking: Asking): Promise<Outcome> {
  try {
    return await convention.ask(place, question, asking)
  } catch (error) {
    if (error instanceof BrokenOff) return { status: 0, code: 'broken_off' }
    if (error instanceof OpenAIError)
      return { status: error.status ?? 0, code: error.code ?? 'none', ...messageOf(error.error) }
    if (error instanceof AnthropicError) return { status: error.status ?? 0, code: error.errorCode ?? 'none' }
    // What both SDKs let through where a connection ends in the middle of a stream.
    if (error instanceof Error && /terminated|aborted|ended/.test(error.message))
      return { status: 0, code: 'broken_off' }
    throw error
  }
}
