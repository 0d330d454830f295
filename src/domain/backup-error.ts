/**
 * A backup that cannot be taken, or a file that cannot be restored. Both sentences are shown unchanged, so they contain no
 * secret and no text of other errors. The exit code is 1.
 */
export class BackupError extends Error {
  override readonly name = 'BackupError'
  /** What to do, in the imperative. */
  readonly fix: string

  constructor(what: string, fix: string) {
    super(what)
    this.fix = fix
  }
}
