/** Longer texts are processed in several turns of the event loop, so that none takes long (decision 07). */
const largeChars = 256 * 1024

/** Yields to the event loop if the text is large. */
export async function yieldToEventLoop(text: { readonly length: number }): Promise<void> {
  if (text.length > largeChars) await nextEventLoopTurn()
}

/** Yields to the event loop. */
export async function nextEventLoopTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve)
  })
}
