/** Longer texts are processed in several turns of the event loop, so that none takes long (decision 07). */
const largeChars = 256 * 1024

/** Yields to the event loop if the text is large. */
export async function yieldToEventLoop(text: { readonly length: number }): Promise<void> {
  if (text.length > largeChars) await nextEventLoopTurn()
}

/** Runs work in one turn of the event loop per step. */
export async function runInTurns<Result>(steps: Iterator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await nextEventLoopTurn()
  }
}

/** Runs the same work in one turn. */
export function runAtOnce<Result>(steps: Iterator<void, Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Yields to the event loop. */
export async function nextEventLoopTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve)
  })
}
