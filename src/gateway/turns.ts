/** From here on work on a text is done in several turns of the event loop, so that no turn takes long (decision 07). */
const largeChars = 256 * 1024

/** Lets everything else that is due run first, where the text that was or will be worked on is large. */
export async function giveWay(text: { readonly length: number }): Promise<void> {
  if (text.length > largeChars) await nextTurn()
}

/** Lets everything else that is due run first. */
export async function nextTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve)
  })
}
