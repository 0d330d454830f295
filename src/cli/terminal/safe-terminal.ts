import { styleText } from 'node:util'
import { escapeJson, safeJson, terminalText } from '../../runtime/safe-text.ts'
import type { Terminal } from '../ports.ts'

/** A piece of output: plain text, or our own text with a style. */
export type Piece = string | { readonly style: 'bold' | 'green' | 'red'; readonly text: string }

/**
 * All command output goes through this class (contract 28.10). Names, tickets, user agents, and provider texts are
 * untrusted, so every control character except the newline is replaced. Only our own styles reach the terminal.
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

  /** Writes whole lines to standard output. */
  out(...pieces: readonly Piece[]): void {
    this.#terminal.out(this.#write(pieces))
  }

  /** Writes whole lines to standard error. */
  err(...pieces: readonly Piece[]): void {
    this.#terminal.err(this.#write(pieces))
  }

  /** Writes one line of JSON to standard output or, for an error, to standard error. */
  json(value: unknown, to: 'out' | 'err' = 'out'): void {
    this.#terminal[to](safeJson(value))
  }

  /** Writes one line of serialized JSON to standard output. */
  jsonLine(line: string): void {
    this.#terminal.out(escapeJson(line))
  }

  readStdin(maxFileBytes?: number): Promise<string> {
    return this.#terminal.readStdin(maxFileBytes)
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
