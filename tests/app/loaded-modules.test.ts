import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

const timeoutMs = 30_000
const root = join(import.meta.dirname, '..', '..')
/** What no request of the API needs, and what only some configurations use. */
const unneeded = [
  'node_modules/(hono|@hono|@simplewebauthn|nodemailer|pg|stripe|google-auth-library|@opentelemetry|@prometheus-io)/',
  'src/(api-docs|billing|eval|mail|metrics|tracing|eval-models|demo-service)[/.]',
  'src/cli/commands/(?!start\\.ts)',
  'src/gateway/replay/',
  'src/simulation/(providers|stripe)/',
  'src/storage/(backup|owner|postgres)/',
  'src/web/(admin|components|docs|operator|pages)/',
]
/** About 1,120 are loaded; with everything in the list above, there were 1,450 (decision 26). */
const maxModules = 1_200

/** Writes the URL of every module to a file. */
const hook = `import { appendFileSync } from 'node:fs'
  import { registerHooks } from 'node:module'
  registerHooks({ load(url, context, next) { appendFileSync('modules', url + '\\n'); return next(url, context) } })`
const settings = `data: data
providers: { mine: { preset: custom, base_url: 'http://127.0.0.1:9/v1', format: openai-chat } }
backends: { only: { provider: mine, model: m } }
profiles: { svc-router/frontier: { backends: [only] } }
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-modules-'))
  writeFileSync(join(folder, 'svc-router.yaml'), settings)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test(
  'the service starts without the modules that no request of the API needs, and loads the web app for the first page',
  { timeout: timeoutMs },
  async () => {
    const preload = `--import=data:text/javascript,${encodeURIComponent(hook)}`
    const args = [preload, join(root, 'src', 'main.ts'), 'start', '--port', '0', '--app-port', '0', '--json']
    const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
    const loaded = (): readonly string[] => {
      const urls = readFileSync(join(folder, 'modules'), 'utf8').split('\n')
      return [...new Set(urls.filter((url) => url.startsWith('file:')))]
    }
    const matching = (pattern: string): readonly string[] => loaded().filter((url) => new RegExp(pattern).test(url))
    try {
      const [started] = await child.stdout.take(1).toArray({ signal: AbortSignal.timeout(timeoutMs) })
      expect(unneeded.flatMap(matching)).toEqual([])
      expect(loaded().length).toBeGreaterThan(500)
      expect(loaded().length).toBeLessThan(maxModules)

      const { app_url: appUrl } = JSON.parse(String(started)) as { app_url: string }
      const page = await fetch(appUrl)
      expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<!doctype html>')])
      expect(matching('src/web/pages/home.ts')).toHaveLength(1)
    } finally {
      child.kill('SIGKILL')
    }
  },
)
