/**
 * Something about the installation that its operator can mend: a data folder in use, a port taken. Both sentences are
 * shown as they are, so neither holds a secret or another error's text. The command line ends with exit code 3.
 */
export class SetupError extends Error {
  override readonly name = 'SetupError'
  /** What to do, as an imperative. */
  readonly fix: string

  constructor(what: string, fix: string) {
    super(what)
    this.fix = fix
  }
}
