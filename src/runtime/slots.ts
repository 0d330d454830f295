/**
 * Numbers values, starting at 0, and reuses the numbers of removed ones. In a `Map`, constant additions and deletions make
 * V8 replace its table over and over, and each old table keeps its values alive for longer (see `SwapRemoveSet`).
 */
export class Slots<Value> {
  readonly #values: (Value | undefined)[] = []
  readonly #free: number[] = []

  /** The count of values. */
  get size(): number {
    return this.#values.length - this.#free.length
  }

  /** Returns the value's number. No other value gets this number until `remove`. */
  add(value: Value): number {
    const number = this.#free.pop() ?? this.#values.length
    this.#values[number] = value
    return number
  }

  get(number: number): Value | undefined {
    return this.#values[number]
  }

  /** Replaces the value of a number that is in use. */
  set(number: number, value: Value): void {
    this.#values[number] = value
  }

  /** Removes the value of a number that is in use; `add` may return the number again. */
  remove(number: number): void {
    this.#values[number] = undefined
    this.#free.push(number)
  }

  /** The current values. */
  all(): Value[] {
    return this.#values.filter((value) => value !== undefined)
  }
}
