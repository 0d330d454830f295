// Installs Portkey, which `npm run bench` compares with, into .cache/portkey, outside the dependencies of this package.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const version = '1.15.2'
// The newest version with which streaming works. With later versions, which Portkey's version range allows, it answers
// every streamed request with a 500 (its issue 1389).
const overrides = { '@hono/node-server': '1.14.0' }
const installTimeoutMs = 5 * 60_000
const folder = join(import.meta.dirname, '..', '.cache', 'portkey')

mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'bench-peer', private: true, overrides }))
const options = ['--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--save-exact']
const result = spawnSync('npm', ['install', ...options, `@portkey-ai/gateway@${version}`], {
  cwd: folder,
  stdio: 'inherit',
  timeout: installTimeoutMs,
})
if (result.status !== 0) {
  console.error(`@portkey-ai/gateway ${version} could not be installed; npm said why above.`)
  process.exit(1)
}
console.log(`@portkey-ai/gateway ${version} is in ${folder}; npm run bench finds it there.`)
