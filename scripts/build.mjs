// npm run build [-- FOLDER]: what is published, in dist or the folder that is named: the program as JavaScript, and
// beside it every other file of src, such as what pages load. From the sources nothing needs to be built.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const timeoutMs = 300_000
const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'dist'))

// What is not there any more must not be published again.
rmSync(target, { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', join(root, 'tsconfig.build.json'), '--outDir', target], {
  stdio: 'inherit',
  timeout: timeoutMs,
})
if (status === 0) cpSync(join(root, 'src'), target, { recursive: true, filter: (path) => extname(path) !== '.ts' })
process.exitCode = status === 0 ? 0 : 1
