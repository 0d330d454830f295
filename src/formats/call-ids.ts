/** The longest call id that clients and providers accept. */
const maxIdCharacters = 64

/** Makes the call ids of one answer valid: never empty, never too long, never used twice (contract 11.10). */
export class CallIds {
  readonly #mintId: () => string
  readonly #used = new Set<string>()

  constructor(mintId: () => string) {
    this.#mintId = mintId
  }

  /** The backend's own id if it is valid and unused, otherwise a new one. */
  unique(id: string): string {
    const isUsable = id !== '' && id.length <= maxIdCharacters && !this.#used.has(id)
    const kept = isUsable ? id : `call_${this.#mintId()}`
    this.#used.add(kept)
    return kept
  }
}
