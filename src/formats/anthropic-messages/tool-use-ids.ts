const forbidden = /[^a-zA-Z0-9_-]/g

/** Gives each call of a conversation a valid id in this format: letters, digits, `_` and `-`, never used twice. */
export class ToolUseIds {
  readonly #used = new Set<string>()

  /** The call's own id if it is valid and unused. */
  unique(id: string): string {
    const clean = id === '' ? 'call' : id.replace(forbidden, '_')
    let candidate = clean
    for (let count = 2; this.#used.has(candidate); count++) candidate = `${clean}_${count}`
    this.#used.add(candidate)
    return candidate
  }
}
