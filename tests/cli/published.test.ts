import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const buildMs = 120_000
const startMs = 60_000
/** A folder as npm unpacks it: what package.json names, built, with the installed packages beside it. */
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-published-'))
  for (const name of [
    'package.json',
    'README.md',
    'LICENSE',
    'bin',
    'docs',
    'svc-router.example.yaml',
    'svc-router.schema.json',
  ])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs'), join(folder, 'dist')], {
    encoding: 'utf8',
    timeout: buildMs,
  })
  expect(status, stdout).toBe(0)
}, buildMs)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const filesIn = (path: string): string[] => readdirSync(path, { recursive: true, encoding: 'utf8' })

test('the package contains the program, every file that pages load, and the documentation', () => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: startMs,
  })
  const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  const paths = packed.files.map(({ path }) => path)
  const assets = filesIn(join(root, 'src/web/assets')).map((name) => `dist/web/assets/${name}`)
  const documents = filesIn(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  const wanted = [
    'README.md',
    'LICENSE',
    'bin/svc-router.mjs',
    'bin/boot.mjs',
    'dist/main.js',
    'dist/storage/sqlite/sqlite-worker.js',
  ]
  expect(paths).toEqual(expect.arrayContaining([...wanted, ...assets, ...documents.map((name) => `docs/${name}`)]))
  expect(paths.filter((path) => path.startsWith('src/') || path.endsWith('.ts'))).toEqual([])
})

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
