const lookEveryMs = 250

export interface NpmParent {
  /** The process that npm started this program under, as bin/ saw it first; undefined where npm does not run it. */
  readonly startedUnder: string | undefined
  readonly parentId: () => number
}

/**
 * Where npm runs this process: calls `run` once after npm, or the shell between, is gone. A signal to `npm start` ends
 * those two alone: the shell passes none on. Does nothing elsewhere, and never keeps the process alive.
 */
export function whenNpmEnds({ startedUnder, parentId }: NpmParent, run: () => void): void {
  if (startedUnder === undefined) return
  const timer = setInterval(() => {
    if (parentId() === Number(startedUnder)) return
    clearInterval(timer)
    run()
  }, lookEveryMs)
  timer.unref()
}
