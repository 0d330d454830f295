import type { JsonObject } from '../../domain/json.ts'
import type { Exchange } from './behave.ts'
import { chatErrorBody, doneFrame, streamChat, streamChatError, writeChat, type AnswerStamp } from './chat.ts'
import { writeEmbeddings } from './embeddings.ts'
import { sealAs } from './encrypted-reasoning.ts'
import { geminiAnswers, isGeminiPath } from './gemini.ts'
import { messageErrorBody, streamMessage, streamMessageError, writeMessage } from './messages.ts'
import { answerAs, type SimulatedCall } from './model.ts'
import { readChatPrompt, readMessagesPrompt, readResponsesPrompt, type Prompt } from './prompt.ts'
import { streamResponse, streamResponseError, writeResponse } from './responses.ts'
import type { ScriptStep } from './script.ts'

/** A format's answers to one body. */
type Answers = Pick<Exchange, 'stream' | 'whole' | 'frames' | 'errorFrame' | 'hugeFrame'>

/** A format that the simulated provider supports. */
export interface FormatAnswers {
  /** The end of a stream after its last event; empty if there is none. */
  readonly ending: string
  /** The body of an error. */
  readonly errorBody: (type: string, code: string, message: string) => JsonObject
  answers(name: string, body: JsonObject, step: ScriptStep, stamp: AnswerStamp): Answers
}

const failure = 'This is a simulated failure.'

/** By request path, for formats with a constant path. */
const speakers: Readonly<Record<string, FormatAnswers>> = {
  '/v1/chat/completions': {
    ending: doneFrame,
    errorBody: chatErrorBody,
    answers(name, body, step, stamp) {
      const prompt = readChatPrompt(body)
      const answer = answerAs(name, prompt, textOf(step), callsOf(step))
      return {
        stream: prompt.stream,
        whole: () => writeChat(answer, prompt, stamp),
        frames: () => streamChat(answer, prompt, stamp),
        errorFrame: () => streamChatError(failure),
        hugeFrame: (bytes) => hugest(streamChat(hugeAnswer(name, prompt, bytes), prompt, stamp)),
      }
    },
  },
  '/v1/responses': {
    ending: doneFrame,
    errorBody: chatErrorBody,
    answers(name, body, step, stamp) {
      const prompt = readResponsesPrompt(body)
      const answer = answerAs(name, prompt, textOf(step), callsOf(step))
      const sealed = { ...stamp, sealed: sealAs(name, stamp.id) }
      return {
        stream: prompt.stream,
        whole: () => writeResponse(answer, body, sealed),
        frames: () => streamResponse(answer, body, sealed),
        errorFrame: (sequence) => streamResponseError(failure, body, stamp, sequence),
        hugeFrame: (bytes) => hugest(streamResponse(hugeAnswer(name, prompt, bytes), body, stamp)),
      }
    },
  },
  '/v1/messages': {
    ending: '',
    errorBody: (type, code, message) =>
      messageErrorBody(code === 'context_length_exceeded' ? 'invalid_request_error' : type, message),
    answers(name, body, step, stamp) {
      const prompt = readMessagesPrompt(body)
      const answer = answerAs(name, prompt, textOf(step), callsOf(step))
      const sealed = { ...stamp, sealed: sealAs(name, stamp.id) }
      return {
        stream: prompt.stream,
        whole: () => writeMessage(answer, prompt, sealed),
        frames: () => streamMessage(answer, prompt, sealed),
        errorFrame: () => streamMessageError(failure),
        hugeFrame: (bytes) => hugest(streamMessage(hugeAnswer(name, prompt, bytes), prompt, stamp)),
      }
    },
  },
  '/v1/embeddings': {
    ending: '',
    errorBody: chatErrorBody,
    answers(_name, body) {
      // Never streamed, whatever the request says, as with real providers.
      return {
        stream: false,
        whole: () => writeEmbeddings(body),
        frames: () => [],
        errorFrame: () => '',
        hugeFrame: () => '',
      }
    },
  },
}

const gemini: FormatAnswers = {
  ending: '',
  errorBody: chatErrorBody,
  answers: (name, body, step, stamp) => geminiAnswers(name, body, { text: textOf(step), calls: callsOf(step) }, stamp),
}

/** The format for a POST to that path; undefined if there is none. */
export function formatAnswersAt(path: string): FormatAnswers | undefined {
  if (Object.hasOwn(speakers, path)) return speakers[path]
  return isGeminiPath(`POST ${path}`) ? gemini : undefined
}

function hugeAnswer(name: string, prompt: Prompt, bytes: number): ReturnType<typeof answerAs> {
  return answerAs(name, { ...prompt, maxTokens: undefined }, 'x'.repeat(bytes))
}

function hugest(frames: Iterable<string>): string {
  let longest = ''
  for (const frame of frames) if (frame.length > longest.length) longest = frame
  return longest
}

/** Calls set by a step instead of the default ones. */
function callsOf({ calls }: ScriptStep): SimulatedCall[] | undefined {
  if (calls === undefined) return undefined
  const list = JSON.parse(calls) as readonly { readonly name: string; readonly arguments: unknown }[]
  return list.map((call) => ({
    kind: 'function',
    name: call.name,
    namespace: undefined,
    arguments: JSON.stringify(call.arguments),
  }))
}

/** Text set by a step instead of the default one. */
function textOf(step: ScriptStep): string | undefined {
  if (step.text !== undefined) return step.text
  if (step.words !== undefined) return 'simulated '.repeat(step.words).trimEnd()
  if (step.length !== undefined) return 'simulated '.repeat(step.length / 10 + 1).slice(0, step.length)
  return undefined
}
