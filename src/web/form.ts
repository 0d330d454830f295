/** What was filled in on a page: read by name, so that nothing else in it can have an effect. */
export class Form {
  readonly #fields: URLSearchParams

  constructor(fields: URLSearchParams = new URLSearchParams()) {
    this.#fields = fields
  }

  /** The text of a field without spaces around it; empty where it is missing. Line ends are those of Unix. */
  text(name: string): string {
    return (this.#fields.get(name) ?? '').replaceAll('\r\n', '\n').trim()
  }

  /** The texts of all fields of one name, as of boxes that are ticked. */
  texts(name: string): readonly string[] {
    return this.#fields.getAll(name)
  }

  /** Whether a box is ticked. */
  isTicked(name: string): boolean {
    return this.#fields.has(name)
  }

  /** The choice among `options`; undefined where another was sent. */
  choice<Option extends string>(name: string, options: readonly Option[]): Option | undefined {
    const text = this.text(name)
    return options.find((option) => option === text)
  }
}
