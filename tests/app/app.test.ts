import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { startApp } from '../../src/app/app.ts'
import type { Config } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { SetupError } from '../../src/runtime/setup-error.ts'

const timeoutMs = 20_000
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-app-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function load(settings: Record<string, unknown> = {}, env: Record<string, string> = {}): Config {
  const path = join(folder, 'svc-router.yaml')
  writeFileSync(path, stringify({ listen: { port: 0 }, data: join(folder, 'data'), ...settings }))
  return loadConfig({ path, explicit: true, overrides: {}, env, random: systemRandom(), localSecrets: 'make' })
}

test('a service whose ledger died logs it once, reports not ready, and stops cleanly', async () => {
  const events: object[] = []
  const started = once(process, 'worker', { signal: AbortSignal.timeout(timeoutMs) })
  const app = await startApp(load(), { log: (event) => void events.push(event) })
  try {
    const [worker] = (await started) as [Worker]
    await worker.terminate()
    expect(await app.failed).toBe('exited')
    const ready = await fetch(`${new URL(app.config.baseUrl).origin}/ready`, {
      signal: AbortSignal.timeout(timeoutMs),
    })
    expect(ready.status).toBe(503)
  } finally {
    await app.stop()
  }
  const names = events.map((event) => ('event' in event ? String(event.event) : ''))
  expect(names.filter((name) => name === 'ledger_failing')).toHaveLength(1)
  // Queries and the audit log run on the same thread, so each part that still had something to save reports its own
  // loss (decision 49). How many files may be open depends on the machine.
  const others = ['store_failing', 'audit_failing', 'descriptor_limit_low']
  expect(names.filter((name) => !others.includes(name))).toEqual(['started', 'ledger_failing', 'draining', 'stopped'])
  expect(events).toContainEqual({ event: 'ledger_failing', reason: 'exited' })
})

test.each([
  ['named account', { account: 'nobody' }, 'nobody'],
  ['local account', {}, 'local'],
])('the service does not start if the %s of a backend does not exist', async (_case, account, name) => {
  const backends = { big: { provider: 'openai', model: 'm', credential_env: 'OPENAI_API_KEY', ...account } }
  const starting = startApp(load({ backends }, { OPENAI_API_KEY: 'made-up' }), { log: () => {} })
  await expect(starting).rejects.toThrow(SetupError)
  await expect(starting).rejects.toThrow(`the backend "big" belongs to the account "${name}", which does not exist`)
})

test('the service keeps running after the reader of its log closes the pipe, and still stops cleanly', async () => {
  const args = [main, 'start', '--port', '0', '--json', '--data', join(folder, 'data')]
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    await once(child.stdout, 'data', { signal })
    child.stderr.destroy()
    const exited = once(child, 'exit', { signal })
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  } finally {
    child.kill('SIGKILL')
  }
})
