#!/usr/bin/env node
// The program: makes sure of packages and of a Node that runs it, then hands over to src/main.ts, or dist/main.js where it is published.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { boot, BootError, compileCache, ensurePackages, findNode, isThisNode, root, runToEnd } from './boot.mjs'

await boot(async () => {
  ensurePackages({ dev: false })
  const main = [join(root, 'src', 'main.ts'), join(root, 'dist', 'main.js')].find((path) => existsSync(path))
  if (main === undefined)
    throw new BootError('this installation is incomplete. Install it again: npm install svc-router')
  const node = findNode()
  if (!isThisNode(node)) {
    return runToEnd(node, node, [main, ...process.argv.slice(2)], { NODE_COMPILE_CACHE: compileCache })
  }
  module.enableCompileCache?.(compileCache)
  // Already the right Node: no second process between the service and whoever stops it.
  await import(pathToFileURL(main).href)
  return process.exitCode
})
