import { inspect } from 'node:util'

/** A value that can be used but not printed: every conversion to text results in `[secret]` (contract 28.8). */
export class Secret<T = string> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  /** The value itself. Call this where the value is used, never to pass it on. */
  reveal(): T {
    return this.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [inspect.custom](): string {
    return '[secret]'
  }
}
