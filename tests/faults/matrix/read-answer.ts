import {
  eventsOf,
  expectBrokenChat,
  expectBrokenMessages,
  expectBrokenResponses,
  expectWholeChat,
  expectWholeMessages,
  expectWholeResponses,
} from '../event-stream.ts'
import type { ClientFormat, Mode } from './upstream-cells.ts'

/** An answer as its client understands it. */
export interface ReadAnswer {
  readonly end: 'complete' | 'broken' | 'error' | `unreadable: ${string}`
  readonly code: string | undefined
  readonly text: string
}

interface Body {
  readonly error?: { readonly code?: string; readonly details?: { readonly error_code?: string } }
  readonly choices?: readonly { readonly message: { readonly content: string } }[]
  readonly status?: string
  readonly output?: readonly { readonly content?: readonly { readonly text?: string }[] }[]
  readonly content?: readonly { readonly text?: string }[]
}

const wholeStream = {
  'openai-chat': expectWholeChat,
  'openai-responses': expectWholeResponses,
  'anthropic-messages': expectWholeMessages,
}
const brokenStream = {
  'openai-chat': expectBrokenChat,
  'openai-responses': expectBrokenResponses,
  'anthropic-messages': expectBrokenMessages,
}

/** Reads a complete response body. What is neither an answer nor an error of the format is `unreadable`. */
export function readAnswer(format: ClientFormat, mode: Mode, status: number, text: string): ReadAnswer {
  try {
    if (status !== 200) return readError(JSON.parse(text) as Body)
    return mode === 'stream' ? readStream(format, text) : readWhole(JSON.parse(text) as Body)
  } catch (error) {
    return { end: `unreadable: ${String(error).slice(0, 300)}`, code: undefined, text }
  }
}

function readError({ error }: Body): ReadAnswer {
  return { end: 'error', code: error?.details?.error_code ?? error?.code, text: '' }
}

function readWhole(body: Body): ReadAnswer {
  const { choices = [], output = [], content = [] } = body
  const texts = [
    ...choices.map(({ message }) => message.content),
    ...[...output.flatMap((item) => item.content ?? []), ...content].map((part) => part.text ?? ''),
  ]
  return { end: 'complete', code: undefined, text: texts.join('') }
}

function readStream(format: ClientFormat, text: string): ReadAnswer {
  const isBroken = /"error":\{/.test(text)
  if (!isBroken) return { end: 'complete', code: undefined, text: wholeStream[format](text) }
  brokenStream[format](text)
  return { end: 'broken', code: 'upstream_broken', text: deltasIn(text) }
}

interface Delta {
  readonly type?: string
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[]
  readonly delta?: string | { readonly text?: string }
}

function deltasIn(text: string): string {
  const deltas = eventsOf(text).filter(({ data }) => data !== '[DONE]')
  return deltas
    .map(({ data }) => {
      const { choices, delta } = JSON.parse(data) as Delta
      if (choices !== undefined) return choices[0]?.delta?.content ?? ''
      return typeof delta === 'string' ? delta : (delta?.text ?? '')
    })
    .join('')
}
