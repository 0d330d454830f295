const forbidden = /[^a-zA-Z0-9_-]/g

/** Gives each call of a conversation an id that this format takes: letters, digits, `_` and `-`, never twice the same. */
export class ToolUseIds {
  readonly #used = new Set<string>()

  /** The call's own id where it can stay. */
  unique(id: string): string {
    const clean = id === '' ? 'call' : id.replace(forbidden, '_')
    let candidate = clean
    for (let count = 2; this.#used.has(candidate); count++) candidate = `${clean}_${count}`
    this.#used.add(candidate)
    return candidate
  }
}
