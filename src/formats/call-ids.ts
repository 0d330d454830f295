/** The longest id of a call that clients and providers take. */
const maxIdCharacters = 64

/** Keeps the ids of one answer's calls usable: never empty, never too long, never twice the same (contract 11.10). */
export class CallIds {
  readonly #mintId: () => string
  readonly #used = new Set<string>()

  constructor(mintId: () => string) {
    this.#mintId = mintId
  }

  /** The backend's own id where it can stay, a new one otherwise. */
  unique(id: string): string {
    const isUsable = id !== '' && id.length <= maxIdCharacters && !this.#used.has(id)
    const kept = isUsable ? id : `call_${this.#mintId()}`
    this.#used.add(kept)
    return kept
  }
}
