import { vi } from 'vitest'

/**
 * Runs `body` while the pauses that a client makes between two tries take no time; gives how long, in milliseconds,
 * they would have been. `asker` finds the client's pausing function in a stack.
 */
export async function withoutSleeping(asker: RegExp, body: () => Promise<void>): Promise<number[]> {
  const slept: number[] = []
  const real = globalThis.setTimeout
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((callback: () => void, ms?: number) => {
    const isClient = asker.test(new Error('who asks').stack ?? '')
    if (isClient) slept.push(ms ?? 0)
    return real(callback, isClient ? 0 : ms)
  }) as typeof setTimeout)
  try {
    await body()
  } finally {
    spy.mockRestore()
  }
  return slept
}
