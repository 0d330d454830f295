import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isLongRun } from '../long-run.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const packMs = 120_000
const startMs = 60_000
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string }
const names = [`svc-router-${version}.tgz`, `svc-router-${version}.cdx.json`]
let temporary: string
/** The package as npm unpacks it, with the installed packages beside it. */
let folder: string

function pack(checkout: string, target: string): void {
  const { status, stderr } = spawnSync(process.execPath, [join(checkout, 'scripts/package.mjs'), target], {
    encoding: 'utf8',
    timeout: packMs,
  })
  expect(status, stderr).toBe(0)
}

beforeAll(() => {
  temporary = mkdtempSync(join(tmpdir(), 'svc-router-published-'))
  pack(root, join(temporary, 'packed'))
  const { status } = spawnSync('tar', ['-xzf', join(temporary, 'packed', names[0]!), '-C', temporary])
  expect(status).toBe(0)
  folder = join(temporary, 'package')
}, packMs)
afterAll(() => rmSync(temporary, { recursive: true, force: true }))

const filesIn = (path: string): string[] => readdirSync(path, { recursive: true, encoding: 'utf8' })
const readPackage = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'))

test('the package contains the program, every file that pages load, and the documentation', () => {
  const paths = filesIn(folder)
  const assets = filesIn(join(root, 'src/web/assets')).map((name) => `dist/web/assets/${name}`)
  const documents = filesIn(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  const wanted = [
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'SECURITY.md',
    'bin/svc-router.mjs',
    'bin/boot.mjs',
    'deploy/systemd/svc-router.service',
    'dist/main.js',
    'dist/storage/sqlite/sqlite-worker.js',
  ]
  expect(paths).toEqual(expect.arrayContaining([...wanted, ...assets, ...documents.map((name) => `docs/${name}`)]))
  expect(paths.filter((path) => path.startsWith('src/') || path.endsWith('.ts'))).toEqual([])
})

test('the package fixes the version and the hash of every package that it needs, and the bill of materials lists them', () => {
  const { packages } = readPackage('npm-shrinkwrap.json') as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity?: string }>>
  }
  const locked = Object.entries(packages).filter(([path]) => path !== '')
  expect(locked.filter(([, { integrity }]) => integrity === undefined)).toEqual([])
  const bill = JSON.parse(readFileSync(join(temporary, 'packed', names[1]!), 'utf8')) as {
    readonly components: readonly {
      readonly name: string
      readonly version: string
      readonly hashes: readonly unknown[]
    }[]
  }
  const named = locked.map(([path, entry]) => `${path.replace(/^.*node_modules\//, '')}@${entry.version}`)
  expect(bill.components.map((component) => `${component.name}@${component.version}`).toSorted()).toEqual(
    named.toSorted(),
  )
  expect(bill.components.filter(({ hashes }) => hashes.length === 0)).toEqual([])
  const { scripts, devDependencies } = readPackage('package.json') as Readonly<Record<string, unknown>>
  expect([scripts, devDependencies]).toEqual([undefined, undefined])
})

// Builds the package a second time, which takes as long as all other tests of this file.
test.runIf(isLongRun)(
  'another checkout of the same files gives the same bytes',
  () => {
    const checkout = join(temporary, 'another', 'checkout')
    const { stdout } = spawnSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    for (const name of stdout.split('\0').filter((path) => !/^$|^(?:tests|bench|shared)\//.test(path))) {
      const path = join(checkout, name)
      mkdirSync(join(path, '..'), { recursive: true })
      cpSync(join(root, name), path)
      // The owner of this checkout has another umask, and made it at another time.
      chmodSync(path, 0o600)
      utimesSync(path, 1_000_000_000, 1_000_000_000)
    }
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
    pack(checkout, join(temporary, 'packed-again'))
    const hashes = (packed: string): string[] =>
      names.map((name) =>
        createHash('sha256')
          .update(readFileSync(join(temporary, packed, name)))
          .digest('hex'),
      )
    expect(hashes('packed-again')).toEqual(hashes('packed'))
  },
  packMs,
)

test(
  'it starts from there, and serves the API, pages, what they load, and documents',
  async () => {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const args = [join(folder, 'dist/main.js'), 'start', '--json', '--port', '0']
    const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    try {
      let said = ''
      child.stdout.on('data', (chunk) => (said += String(chunk)))
      await expect.poll(() => said, { timeout: startMs / 2 }).toContain('"app_url"')
      const appUrl = /"app_url":\s*"([^"]+)"/.exec(said)?.[1] ?? ''
      const page = await (await fetch(appUrl)).text()
      const assets = Array.from(page.matchAll(/"(\/assets\/[^"]+)"/g), ([, path]) => path!)
      expect(assets.length).toBeGreaterThanOrEqual(3)
      for (const path of ['/docs/operators', '/docs/errors/key_missing', ...assets]) {
        const response = await fetch(`${appUrl}${path}`)
        expect([path, response.status, (await response.text()).length > 100]).toEqual([path, 200, true])
      }
    } finally {
      child.kill('SIGTERM')
      await ended
    }
  },
  startMs,
)
