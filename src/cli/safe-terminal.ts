import { styleText } from 'node:util'
import { escapeJson, safeJson, terminalText } from '../domain/safe-text.ts'
import type { Terminal } from './ports.ts'

/** A part of what is printed: text, or our own text in a style. */
export type Piece = string | { readonly style: 'bold' | 'red'; readonly text: string }

/**
 * The only way in which commands print. Names, tickets, user agents, and provider texts come from strangers, so every
 * control character but the newline is replaced; only styles of our own reach the terminal.
 */
export class SafeTerminal {
  readonly #terminal: Terminal
  readonly #colors: boolean

  constructor(terminal: Terminal, colors: boolean) {
    this.#terminal = terminal
    this.#colors = colors
  }

  get env(): Terminal['env'] {
    return this.#terminal.env
  }

  get stdinIsTty(): boolean {
    return this.#terminal.stdinIsTty
  }

  /** Whole lines to standard output. */
  out(...pieces: readonly Piece[]): void {
    this.#terminal.out(this.#write(pieces))
  }

  /** Whole lines to standard error. */
  err(...pieces: readonly Piece[]): void {
    this.#terminal.err(this.#write(pieces))
  }

  /** One line of JSON to standard output or, for an error, to standard error. */
  json(value: unknown, to: 'out' | 'err' = 'out'): void {
    this.#terminal[to](safeJson(value))
  }

  /** One line of JSON that is already written, to standard output. */
  jsonLine(line: string): void {
    this.#terminal.out(escapeJson(line))
  }

  readStdin(): Promise<string> {
    return this.#terminal.readStdin()
  }

  onStop(run: () => void): void {
    this.#terminal.onStop(run)
  }

  #write(pieces: readonly Piece[]): string {
    return pieces
      .map((piece) => {
        if (typeof piece === 'string') return terminalText(piece)
        const text = terminalText(piece.text)
        return this.#colors ? styleText(piece.style, text, { validateStream: false }) : text
      })
      .join('')
  }
}
