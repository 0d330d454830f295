import { existsSync } from 'node:fs'

/** libfaketime, which changes the wall clock of a process and, as the tests use it, not its monotonic clock. */
export const fakeTimeLibrary = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'

/** Whether processes can be started with a wrong clock. If not, prints a notice. */
export function hasFakeTime(suite: string): boolean {
  if (existsSync(fakeTimeLibrary)) return true
  process.stderr.write(`\nSKIPPED: ${suite}, because libfaketime was not found\n\n`)
  return false
}
