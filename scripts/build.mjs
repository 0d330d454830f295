// npm run build [-- FOLDER]: writes the published files to FOLDER, by default dist: the program as JavaScript, and every
// other file of src, such as the assets of pages. To run from the sources, no build is needed.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const timeoutMs = 300_000
const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'dist'))

// Files that no longer exist in src must not be published.
rmSync(target, { recursive: true, force: true })
// `npm run check` checks the types, which takes six times as long.
const args = ['-p', join(root, 'tsconfig.build.json'), '--noCheck', '--outDir', target]
const { status } = spawnSync('tsc', args, { stdio: 'inherit', timeout: timeoutMs })
if (status === 0) cpSync(join(root, 'src'), target, { recursive: true, filter: (path) => extname(path) !== '.ts' })
process.exitCode = status === 0 ? 0 : 1
