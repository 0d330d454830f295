/**
 * A problem with the installation that its operator can fix, such as a data folder in use or a port that is taken. Both
 * sentences are shown unchanged, so they contain no secret and no text of other errors. The exit code is 3.
 */
export class SetupError extends Error {
  override readonly name = 'SetupError'
  /** What to do, in the imperative. */
  readonly fix: string

  constructor(what: string, fix: string) {
    super(what)
    this.fix = fix
  }
}
