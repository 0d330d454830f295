const lookEveryMs = 250

export interface WatchedParent {
  /** The process that bin/ named; undefined if the program may outlive all others. */
  readonly startedUnder: string | undefined
  readonly parentId: () => number
}

/**
 * Calls `run` once after the process that started this one has exited: npm or the shell between, because a signal to
 * `npm start` ends only those two (contract 32.7), or the process of bin/ where it could not be replaced by this one. Never
 * keeps the process alive.
 */
export function onParentExit({ startedUnder, parentId }: WatchedParent, run: () => void): void {
  if (startedUnder === undefined) return
  const timer = setInterval(() => {
    if (parentId() === Number(startedUnder)) return
    clearInterval(timer)
    run()
  }, lookEveryMs)
  timer.unref()
}
