/** The submitted fields of a form, read by name. */
export class Form {
  readonly #fields: URLSearchParams

  constructor(fields: URLSearchParams = new URLSearchParams()) {
    this.#fields = fields
  }

  /** The trimmed text of a field, with LF line endings; empty if it is missing. */
  text(name: string): string {
    return (this.#fields.get(name) ?? '').replaceAll('\r\n', '\n').trim()
  }

  /** The values of all fields with this name, such as checkboxes. */
  texts(name: string): readonly string[] {
    return this.#fields.getAll(name)
  }

  /** Whether a checkbox is selected. */
  isTicked(name: string): boolean {
    return this.#fields.has(name)
  }

  /** The selected option; undefined if the value is not one of `options`. */
  choice<Option extends string>(name: string, options: readonly Option[]): Option | undefined {
    const text = this.text(name)
    return options.find((option) => option === text)
  }
}
