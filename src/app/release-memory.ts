import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Releases memory that only startup needed: sources, the configuration's text, and the heap that grew for them. Blocks
 * for about 50 ms, so it is called once, before requests arrive.
 */
export function releaseStartMemory(): void {
  // Node offers no other way to run the garbage collector from inside.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
