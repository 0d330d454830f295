// node bin/run.mjs COMMAND ARGS…: runs a command of this project with its packages installed and its pinned Node first on PATH.
import { boot, BootError, ensurePackages, findNode, runToEnd } from './boot.mjs'

await boot(async () => {
  const [command, ...args] = process.argv.slice(2)
  if (command === undefined) throw new BootError('say what to run, for example: node bin/run.mjs vitest run')
  await ensurePackages({ dev: true })
  return runToEnd(findNode(), command, args)
})
