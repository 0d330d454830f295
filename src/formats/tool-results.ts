import type { ToolTurn, Turn } from '../domain/conversation.ts'

/** Finds the result of each call, anywhere after the call; ids may repeat in later turns. */
export class ToolResults {
  readonly #turns: readonly Turn[]
  readonly #waiting = new Map<string, { readonly positions: number[]; next: number }>()
  readonly #taken = new Set<number>()

  constructor(turns: readonly Turn[]) {
    this.#turns = turns
    for (let position = 0; position < turns.length; position++) {
      const turn = turns[position]!
      if (turn.role !== 'tool') continue
      const waiting = this.#waiting.get(turn.callId)
      if (waiting === undefined) this.#waiting.set(turn.callId, { positions: [position], next: 0 })
      else waiting.positions.push(position)
    }
  }

  /** The first result for that call that was not taken yet. */
  take(callId: string): ToolTurn | undefined {
    const waiting = this.#waiting.get(callId)
    if (waiting === undefined) return undefined
    const found = waiting.positions[waiting.next]
    if (found === undefined) return undefined
    waiting.next += 1
    this.#taken.add(found)
    const turn = this.#turns[found]
    return turn?.role === 'tool' ? turn : undefined
  }

  /** Whether the result at `position` was taken. */
  isTaken(position: number): boolean {
    return this.#taken.has(position)
  }
}
