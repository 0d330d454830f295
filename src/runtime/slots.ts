/**
 * Values by small numbers, which are used again. Unlike a `Map` that many entries pass through, it leaves no dead tables
 * of references behind (see `SwapRemoveSet`).
 */
export class Slots<Value> {
  readonly #values: (Value | undefined)[] = []
  readonly #free: number[] = []

  /** How many numbers are in use. */
  get size(): number {
    return this.#values.length - this.#free.length
  }

  /** Returns the value's number, which no other has until it is removed. */
  add(value: Value): number {
    const number = this.#free.pop() ?? this.#values.length
    this.#values[number] = value
    return number
  }

  get(number: number): Value | undefined {
    return this.#values[number]
  }

  /** Replaces the value of a number in use. */
  set(number: number, value: Value): void {
    this.#values[number] = value
  }

  /** Frees a number in use. */
  remove(number: number): void {
    this.#values[number] = undefined
    this.#free.push(number)
  }

  /** The current values. */
  all(): Value[] {
    return this.#values.filter((value) => value !== undefined)
  }
}
