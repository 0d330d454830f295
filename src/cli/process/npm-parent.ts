const lookEveryMs = 250

export interface NpmParent {
  /** The parent process that bin/ saw at the start; undefined if npm did not start this program. */
  readonly startedUnder: string | undefined
  readonly parentId: () => number
}

/**
 * If npm started this process: calls `run` once after npm, or the shell between, has exited. A signal to `npm start`
 * ends only those two, because the shell does not forward it (contract 32.7). Otherwise does nothing. Never keeps the
 * process alive.
 */
export function onNpmExit({ startedUnder, parentId }: NpmParent, run: () => void): void {
  if (startedUnder === undefined) return
  const timer = setInterval(() => {
    if (parentId() === Number(startedUnder)) return
    clearInterval(timer)
    run()
  }, lookEveryMs)
  timer.unref()
}
