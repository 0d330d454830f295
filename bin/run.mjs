// node bin/run.mjs COMMAND ARGS…: installs the packages if necessary, then runs a command with the pinned Node first in
// PATH.
import { boot, BootError, ensurePackages, findNode, runToEnd } from './boot.mjs'

await boot(async () => {
  const [command, ...args] = process.argv.slice(2)
  if (command === undefined) throw new BootError('name a command to run, for example: node bin/run.mjs vitest run')
  await ensurePackages({ dev: true })
  return runToEnd(findNode(), command, args)
})
