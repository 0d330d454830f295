#!/usr/bin/env node
// The program: ensures that packages and a suitable Node are present, then runs src/main.ts, or dist/main.js if
// published.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { become, boot, BootError, ensurePackages, findNode, nodeFlags, root } from './boot.mjs'

await boot(async () => {
  await ensurePackages({ dev: false })
  const main = [join(root, 'src', 'main.ts'), join(root, 'dist', 'main.js')].find((path) => existsSync(path))
  if (main === undefined)
    throw new BootError('this installation is incomplete. Install it again: npm install svc-router')
  return become(findNode(), [...nodeFlags, main, ...process.argv.slice(2)])
})
