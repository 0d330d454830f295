import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shortageOf } from '../../../src/providers/http/shortage.ts'
import { openBackend, openPools, run } from '../support.ts'

function failing(code: string, fields: object = {}): NodeJS.ErrnoException {
  return Object.assign(new Error(`connect ${code}`), { code, ...fields })
}

test.each(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])('%s is our own shortage and is reported', async (code) => {
  const reported: string[] = []
  const lookup = (_host: string, _options: unknown, callback: (error: Error, address: string) => void): void =>
    callback(failing(code), '')
  const { error } = await run(
    openBackend(openPools({ lookup, onShortage: (given) => reported.push(given) }), 'http://a.invalid'),
  )
  expect(error).toMatchObject({ outcome: 'not_sent', blames: 'gateway' })
  expect(reported).toEqual([code])
})

test('an unavailable address means a shortage of ports, or for IPv6 a machine without IPv6', () => {
  expect(shortageOf(failing('EADDRNOTAVAIL', { address: '192.0.2.1' }))).toBe('EADDRNOTAVAIL')
  expect(shortageOf(failing('EADDRNOTAVAIL', { address: '2001:db8::1' }))).toBeUndefined()
  expect(shortageOf(failing('ECONNREFUSED', { address: '192.0.2.1' }))).toBeUndefined()
})

test('a process without descriptors blames no provider, neither for an address nor for a name', () => {
  const source = (path: string): string => JSON.stringify(join(import.meta.dirname, '..', '..', '..', 'src', path))
  const script = `
    import { openSync, closeSync } from 'node:fs'
    const [{ createUpstreamPools }, { createBackend }, { defaultTimeouts }, { vendors }, { systemClock }] = await Promise.all(
      [${['providers/http/upstream-pools.ts', 'providers/backend.ts', 'providers/timeouts.ts', 'providers/registry.ts', 'runtime/clock.ts'].map(source).join()}].map((path) => import(path)))
    const pools = createUpstreamPools({ clock: systemClock(), version: '0' })
    const outcomeAt = (baseUrl) => new Promise((resolve) => {
      const spec = { id: 'a', failureDomain: 'a', format: 'openai-chat', model: 'm', simulated: false, timeouts: defaultTimeouts(false),
        dialect: vendors.custom.dialect, baseUrl, authHeader: null }
      createBackend(spec, pools).call({ body: '{}', stream: false, requestId: 'r' },
        { onHead() {}, onData() {}, onEnd() {}, onError: (error) => resolve(error.outcome) })
    })
    const outcomes = []
    const held = []
    try { for (;;) held.push(openSync('/dev/null')) } catch {}
    outcomes.push(await outcomeAt('http://127.0.0.1:1'), await outcomeAt('http://localhost:1'))
    for (const descriptor of held) closeSync(descriptor)
    outcomes.push(await outcomeAt('http://127.0.0.1:1'))
    console.log(outcomes.join())`
  const shell = 'ulimit -n 96 && exec "$0" --input-type=module -e "$1"'
  const { stdout, stderr } = spawnSync('sh', ['-c', shell, process.execPath, script], {
    encoding: 'utf8',
    timeout: 20_000,
  })
  expect(stdout.trim(), stderr).toBe('not_sent,not_sent,unreachable')
})
