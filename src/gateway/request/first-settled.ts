import type { Clock } from '../../runtime/clock.ts'

/** Whether a promise is still pending after this time. */
export function isPendingAfter(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(true))
    const settled = (): void => {
      timer.cancel()
      resolve(false)
    }
    promise.then(settled, settled)
  })
}

/** Which of two promises settled first, and how. Never rejects. */
export async function firstSettled<Value>(
  first: Promise<Value>,
  second: Promise<Value>,
): Promise<{ readonly isSecond: boolean; readonly result: PromiseSettledResult<Value> }> {
  const marked = async (promise: Promise<Value>, isSecond: boolean) => {
    const [result] = await Promise.allSettled([promise])
    return { isSecond, result }
  }
  return await Promise.race([marked(first, false), marked(second, true)])
}
