import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
const buildMs = 1_200_000
const commandMs = 60_000
const readyMs = 30_000
const image = 'localhost/svc-router-test'
/** Where the registry of images cannot be reached: the name of a local image with Node and npm. */
const base = process.env.SVC_ROUTER_TEST_IMAGE_BASE

interface Ran {
  readonly status: number | null
  readonly stdout: string
  /** Standard output and standard error. */
  readonly output: string
}

function run(program: string, args: readonly string[], timeout = commandMs): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: root, encoding: 'utf8', timeout })
  return { status, stdout, output: `${stdout}${stderr}` }
}

const engine = ['docker', 'podman'].find((program) => run(program, ['info']).status === 0)

/** Builds the image. Says loudly why it cannot be built, except for a mistake in it. */
function build(): boolean {
  const skip = (why: string): false => {
    process.stderr.write(`\nSKIPPED: the tests of the image, because ${why}\n\n`)
    return false
  }
  if (engine === undefined) return skip('neither Docker nor Podman answers')
  const from = base === undefined ? [] : ['--build-arg', `BASE=${base}`]
  // Podman's own format has no health checks.
  const format = engine === 'podman' ? ['--format', 'docker'] : []
  const { status, output } = run(engine, ['build', '--tag', image, ...format, ...from, '.'], buildMs)
  if (status === 0) return true
  if (/pinging container registry|dial tcp|no such host|i\/o timeout/.test(output))
    return skip('its base cannot be fetched')
  throw new Error(`the image cannot be built: ${output.slice(-2_000)}`)
}

describe.skipIf(!build())('the image', () => {
  const inside = (...args: readonly string[]): Ran => run(engine!, ['exec', container, ...args])
  const hardened = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
  let container: string
  let folder: string

  async function start(...options: readonly string[]): Promise<void> {
    // Without a network, the ports are reachable in the container only.
    const args = ['run', '--detach', '--network', 'none', ...hardened, ...options, image]
    const { status, stdout, output } = run(engine!, args)
    expect(status, output).toBe(0)
    container = stdout.trim()
    const giveUpAtMs = performance.now() + readyMs
    while (!ask('/ready', {}).startsWith('200 ')) {
      if (performance.now() > giveUpAtMs) throw new Error(run(engine!, ['logs', container]).output)
      await sleep(200)
    }
  }

  /** Status and body of a request to the API, sent from inside of the container. */
  function ask(path: string, init: object): string {
    const program = `fetch('http://127.0.0.1:8787${path}', ${JSON.stringify(init)}).then(async (r) => console.log(r.status, await r.text()))`
    return inside('node', '-e', program).stdout
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-image-'))
  })
  afterAll(() => {
    run(engine!, ['rm', '--force', '--volumes', container])
    rmSync(folder, { recursive: true, force: true })
  })

  test('answers without privileges and with a read-only root file system', async () => {
    await start()
    const key = inside('cat', '/data/first-key').stdout.trim()
    const body = JSON.stringify({ model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] })
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    expect(ask('/v1/chat/completions', { method: 'POST', headers, body })).toMatch(/^200 .*simulated/s)
    expect(inside('id', '-u').stdout.trim()).toBe('1000')
    expect(inside('touch', '/opt/file').output).toContain('Read-only file system')
    expect(inside('sh', '-c', 'grep -E "^(CapEff|NoNewPrivs)" /proc/self/status').output).toMatch(
      /CapEff:\s+0+\nNoNewPrivs:\s+1/,
    )
    // Nothing in it can install packages.
    expect(inside('sh', '-c', 'command -v npm npx corepack').status).not.toBe(0)
  })

  test('its health check succeeds, and would fail if nothing listened', () => {
    const { stdout } = run(engine!, ['inspect', '--format', '{{json .Config.Healthcheck.Test}}', container])
    const [kind, ...command] = JSON.parse(stdout) as string[]
    expect(kind).toBe('CMD')
    expect(inside(...command).status).toBe(0)
    expect(inside(...command.map((word) => word.replace(':8787/', ':8789/'))).status).toBe(1)
  })

  test('a stop signal ends it in order, and its volume has the data', () => {
    expect(run(engine!, ['stop', '--time', '30', container]).status).toBe(0)
    expect(run(engine!, ['inspect', '--format', '{{.State.ExitCode}}', container]).stdout.trim()).toBe('0')
    expect(run(engine!, ['logs', container]).output).toContain('"event":"stopped"')
  })

  test('runs in production mode with a configuration file and secrets from a file', async () => {
    run(engine!, ['rm', '--force', '--volumes', container])
    const secret = (): string => randomBytes(32).toString('base64')
    const [config, secrets] = [join(folder, 'svc-router.yaml'), join(folder, 'secrets.env')]
    writeFileSync(config, 'mode: production\nbase_url: https://api.example.com/v1\napp_url: https://app.example.com\n')
    writeFileSync(secrets, `SVC_ROUTER_PEPPER=${secret()}\nSVC_ROUTER_SEALING_KEY=${secret()}\n`)
    await start('--env-file', secrets, '--volume', `${config}:/svc-router.yaml:ro`)
    expect(inside('svc-router', 'accounts', 'create', 'acme').status).toBe(0)
    expect(inside('svc-router', 'check').output).toContain('production')
  })
})
