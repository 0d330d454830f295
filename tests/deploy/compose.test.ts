import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { deploy, hasTool, run } from './tools.ts'

const source = join(deploy, 'compose')
interface Service {
  readonly read_only: boolean
  readonly cap_drop: readonly string[]
  readonly security_opt: readonly string[]
  readonly restart: string
}
const { services } = parse(readFileSync(join(source, 'compose.yaml'), 'utf8')) as {
  services: Readonly<Record<string, Service>>
}

test.each(Object.entries(services))('the service %s of compose.yaml has no privileges', (_, service) => {
  expect(service).toMatchObject({
    read_only: true,
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
    restart: 'unless-stopped',
  })
})

test('nodes wait for the database until it accepts connections over TCP: its image first runs a server without', () => {
  const { services } = parse(readFileSync(join(source, 'two-nodes.yaml'), 'utf8')) as {
    services: { readonly postgres: { readonly healthcheck: { readonly test: readonly string[] } } }
  }
  const [, program, ...args] = services.postgres.healthcheck.test
  expect(program).toBe('pg_isready')
  expect(args.slice(0, 2)).toEqual(['--host', '127.0.0.1'])
})

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-compose-'))
  cpSync(source, folder, { recursive: true })
  writeFileSync(join(folder, 'secrets.env'), 'SVC_ROUTER_PEPPER=any\n')
  writeFileSync(join(folder, 'svc-router.yaml'), 'mode: production\n')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hosts = ['API_HOST=api.example.com', 'APP_HOST=app.example.com']

test.skipIf(!hasTool('docker', ['compose', 'version']))('Docker Compose accepts compose.yaml', () => {
  const config = (environment: readonly string[], ...files: readonly string[]) =>
    run('env', [...environment, 'docker', 'compose', ...files, 'config'], { cwd: folder })
  expect(config(hosts)).toMatchObject({ status: 0, output: expect.stringContaining('target: /svc-router.yaml') })
  expect(config(hosts, '--file', 'compose.yaml', '--file', 'two-nodes.yaml')).toMatchObject({ status: 0 })
  expect(config([]).output).toContain('set API_HOST, such as api.example.com')
})

test.skipIf(!hasTool('caddy', ['version']))('Caddy accepts its configuration', () => {
  const args = ['caddy', 'validate', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')]
  const nodes = ['API_NODES=svc-router:8787 svc-router-2:8787', 'APP_NODES=svc-router:8788 svc-router-2:8788']
  for (const environment of [hosts, [...hosts, ...nodes]])
    expect(run('env', [...environment, ...args])).toMatchObject({ status: 0 })
})
