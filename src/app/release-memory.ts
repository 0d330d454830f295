import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Gives back what starting took and nobody needs any more: sources that were read, the configuration's text, a heap that
 * had grown for them. Blocks for about 50 ms, so it is called once, before requests come.
 */
export function releaseStartMemory(): void {
  // Node has no other way to ask for it from inside.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
