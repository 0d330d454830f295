import { APIError as AnthropicError } from '@anthropic-ai/sdk'
import { APIError as OpenAIError } from 'openai'
import { chat } from './chat.ts'
import { messages } from './messages.ts'
import {
  IncompleteAnswer,
  type AskOptions,
  type Convention,
  type Outcome,
  type Endpoint,
  type Question,
} from './outcome.ts'
import { responses } from './responses.ts'

export const conventions: readonly Convention[] = [chat, responses, messages]
/** The convention of direct requests: every server supports it. */
export const direct = chat

/** The message in the body of an error, without the text that the SDK adds. */
function messageOf(body: unknown): { message?: string } {
  const { message } = (body ?? {}) as { message?: unknown }
  return typeof message === 'string' ? { message } : {}
}

/**
 * Sends a question and returns the answer or the failure. @throws Error for any other exception, such as one of the test
 */
export async function ask(
  convention: Convention,
  endpoint: Endpoint,
  question: Question,
  options: AskOptions,
): Promise<Outcome> {
  try {
    return await convention.ask(endpoint, question, options)
  } catch (error) {
    if (error instanceof IncompleteAnswer) return { status: 0, code: 'incomplete' }
    if (error instanceof OpenAIError)
      return { status: error.status ?? 0, code: error.code ?? 'none', ...messageOf(error.error) }
    if (error instanceof AnthropicError) return { status: error.status ?? 0, code: error.errorCode ?? 'none' }
    // Both SDKs throw these errors of Node if a connection ends during a stream.
    if (error instanceof Error && /terminated|aborted|ended/.test(error.message))
      return { status: 0, code: 'incomplete' }
    throw error
  }
}
