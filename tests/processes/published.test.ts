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
  statSync,
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
/** The package as npm unpacks it. */
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

/** The packages of the lock file that a checkout without development packages has on every platform, by their path. */
function neededPackages(): Map<string, { readonly version: string }> {
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))
  const { packages } = read('package-lock.json') as {
    readonly packages: Readonly<
      Record<string, { readonly version: string; readonly dev?: boolean; readonly devOptional?: boolean }>
    >
  }
  const { optionalDependencies } = read('package.json') as { readonly optionalDependencies: object }
  const left = new Set(['', ...Object.keys(optionalDependencies).map((name) => `node_modules/${name}`)])
  return new Map(
    Object.entries(packages).filter(
      ([path, { dev, devOptional }]) => dev !== true && devOptional !== true && !left.has(path),
    ),
  )
}

const isPackage = /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/
const statesLicense = /^(?:licen[cs]e|notice|copying|copyright)/i

test('the package contains every package that it needs in the locked version, and the bill of materials lists them', () => {
  const named = (path: string, version: string): string => `${path.replace(/^.*node_modules\//, '')}@${version}`
  const locked = [...neededPackages()].map(([path, entry]) => named(path, entry.version))
  const bundled = filesIn(folder)
    .filter((path) => isPackage.test(path))
    .map((path) => named(path.replace(/\/package\.json$/, ''), readPackage(path).version))
  expect(bundled.toSorted()).toEqual(locked.toSorted())
  const bill = JSON.parse(readFileSync(join(temporary, 'packed', names[1]!), 'utf8')) as {
    readonly components: readonly {
      readonly name: string
      readonly version: string
      readonly hashes: readonly unknown[]
    }[]
  }
  const listed = bill.components.map((component) => `${component.name}@${component.version}`)
  expect(listed.toSorted()).toEqual(locked.toSorted())
  expect(bill.components.filter(({ hashes }) => hashes.length === 0)).toEqual([])
  const { scripts, devDependencies, dependencies, bundleDependencies } = readPackage('package.json')
  expect([scripts, devDependencies]).toEqual([undefined, undefined])
  expect(bundleDependencies).toEqual(Object.keys(dependencies))
})

test('the package contains the licenses of its packages, and neither their types nor their source maps', () => {
  for (const path of neededPackages().keys()) {
    const files = readdirSync(join(root, path)).filter((name) => statesLicense.test(name))
    // Three packages state it in their README only.
    const wanted = files.length > 0 ? files : ['README.md']
    expect([path, readdirSync(join(folder, path))]).toEqual([path, expect.arrayContaining(wanted)])
  }
  expect(filesIn(folder).filter((path) => /\.(?:ts|map)$/.test(path))).toEqual([])
})

test(
  'every file of its packages finds what it loads',
  () => {
    // A program of a package is there for npm only, and can end what loads it.
    const files = filesIn(folder)
      .filter((path) => /^node_modules\/.*(?<!\/bin)\.[cm]?js$/.test(path))
      .filter((path) => statSync(join(folder, path)).isFile())
    // What is loaded can keep the process alive.
    const program = `
    const failed = []
    for (const file of JSON.parse(process.argv[2]))
      await import(process.argv[1] + file).catch((error) => failed.push(file + ': ' + error.message.split('\\n')[0]))
    process.stdout.write(JSON.stringify(failed), () => process.exit(0))`
    const failures = (inside: string): string[] => {
      const args = ['--input-type=module', '--eval', program, `${inside}/`, JSON.stringify(files)]
      const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: inside, encoding: 'utf8', timeout: packMs })
      expect(stdout, stderr).toMatch(/^\[/)
      return JSON.parse(stdout) as string[]
    }
    expect(files.length).toBeGreaterThan(1_000)
    // Some cannot be loaded anywhere, for example because they need an optional package.
    expect(failures(folder)).toEqual(failures(root))
  },
  2 * packMs,
)

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
