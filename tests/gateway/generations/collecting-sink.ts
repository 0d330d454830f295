import type { AnswerSink } from '../../../src/gateway/ports.ts'

const none = (): void => {}

/** A client that reads everything at once, and what it has received. `onEnd` gets all of it at the end. */
export function collectingSink(onEnd: (text: string) => void = none): {
  readonly sink: AnswerSink
  readonly received: () => string
} {
  let text = ''
  const write = (bytes: string | Uint8Array): true => {
    text += Buffer.from(bytes as Uint8Array).toString()
    return true
  }
  const end = (bytes: string | Uint8Array = ''): void => {
    write(bytes)
    onEnd(text)
  }
  const sink = { open: none, write, end, hold: none, release: none, drop: none, onDrain: none, onDisconnect: none }
  return { sink, received: () => text }
}
