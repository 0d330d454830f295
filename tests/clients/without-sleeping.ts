import { vi } from 'vitest'

/**
 * Runs `body` while a client's pauses between retries take no time; returns their lengths in milliseconds.
 * `asker` matches the client's pausing function in a stack trace.
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
