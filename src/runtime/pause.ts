import type { Clock } from './clock.ts'

/** Resolves after this time, milliseconds. Nothing ends it earlier. */
export function pause(clock: Pick<Clock, 'after'>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve)
  })
}
