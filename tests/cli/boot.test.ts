import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const runner = fileURLToPath(new URL('../../bin/run.mjs', import.meta.url))
const program = fileURLToPath(new URL('../../bin/svc-router.mjs', import.meta.url))
const bootUrl = new URL('../../bin/boot.mjs', import.meta.url).href
const timeoutMs = 20_000

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-boot-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a piece of code that has boot.mjs as `b` and prints JSON. */
function evaluate(code: string, env: Record<string, string> = {}): { value: unknown; err: string } {
  const source = `import * as b from ${JSON.stringify(bootUrl)}; const folder = ${JSON.stringify(folder)}; console.log(JSON.stringify(await (async () => { ${code} })()))`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    timeout: timeoutMs,
    env: { ...process.env, ...env },
  })
  return { value: stdout === '' ? undefined : JSON.parse(stdout), err: stderr }
}

function writeLocks(wanted: Record<string, object>, installed: Record<string, object> | undefined): void {
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: { '': { name: 'x' }, ...wanted } }))
  if (installed === undefined) return
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  writeFileSync(join(folder, 'node_modules', '.package-lock.json'), JSON.stringify({ packages: installed }))
}

const a = { version: '1.0.0', integrity: 'sha512-a' }

test.each([
  ['nothing is installed', { 'node_modules/a': a }, undefined, true, false],
  ['everything is', { 'node_modules/a': a }, { 'node_modules/a': a }, true, true],
  ['another version is', { 'node_modules/a': a }, { 'node_modules/a': { ...a, version: '1.0.1' } }, true, false],
  ['other content is', { 'node_modules/a': a }, { 'node_modules/a': { ...a, integrity: 'sha512-b' } }, true, false],
  ['one is missing', { 'node_modules/a': a, 'node_modules/b': a }, { 'node_modules/a': a }, true, false],
  ['an optional one is missing', { 'node_modules/a': { ...a, optional: true } }, {}, true, true],
  ['a development one is missing for the tests', { 'node_modules/a': { ...a, dev: true } }, {}, true, false],
  ['a development one is missing for the service', { 'node_modules/a': { ...a, dev: true } }, {}, false, true],
])('installed packages are detected: %s', (_name, wanted, installed, dev, expected) => {
  writeLocks(wanted, installed)
  expect(evaluate(`return b.isInstalled(folder, ${dev})`).value).toBe(expected)
})

test('missing packages are announced in one line, and a failed installation says what to do', () => {
  writeLocks({ 'node_modules/a': a }, undefined)
  // An npm that cannot reach its registry.
  writeFileSync(join(folder, 'npm'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const { value, err } = evaluate(
    'await b.boot(() => b.ensurePackages({ dev: true, folder })); return process.exitCode',
    { PATH: `${folder}:${process.env['PATH']}` },
  )
  expect(value).toBe(1)
  expect(err.trim().split('\n')).toEqual([
    `svc-router: installing packages, including those for development, into ${join(folder, 'node_modules')} (npm ci). This happens once …`,
    'svc-router: the packages could not be installed. Check the network and the npm registry, then run: npm ci --ignore-scripts',
  ])
})

test('an installation reports progress and failures, and omits warnings about packages', () => {
  writeLocks({ 'node_modules/a': a }, undefined)
  const lines = [
    'warn EBADENGINE x',
    'http fetch GET 200 https://registry.example/a/-/a-1.0.0.tgz 9ms',
    'error code E1',
  ]
  writeFileSync(
    join(folder, 'npm'),
    `#!/bin/sh\n${lines.map((line) => `echo "npm ${line}" >&2`).join('\n')}\nsleep 3.3\n`,
    { mode: 0o755 },
  )
  const { err } = evaluate('await b.ensurePackages({ dev: false, folder }); return "ok"', {
    PATH: `${folder}:${process.env['PATH']}`,
  })
  expect(err.trim().split('\n').slice(1)).toEqual(['npm error code E1', 'svc-router: 3 s, packages downloaded: 1 …'])
})

test('a published package has no lock file and installs nothing', () => {
  expect(evaluate('await b.ensurePackages({ dev: true, folder }); return "ok"')).toEqual({ value: 'ok', err: '' })
})

test('without the pinned Node, the current one is used if it is new enough; otherwise the error says what to do', () => {
  expect(evaluate('return b.findNode({ folder, version: "24.12.0" }) === process.execPath').value).toBe(true)
  expect(evaluate('return b.findNode({ folder, version: "26.0.0" }) === process.execPath').value).toBe(true)
  expect(
    evaluate('try { b.findNode({ folder, version: "24.11.9" }) } catch (error) { return error.message }').value,
  ).toMatch(/^this is Node 24\.11\.9, and svc-router needs Node 24\.12 or newer .*nodejs\.org/)
})

test('a command gets its arguments and the pinned Node, and its exit code is passed on', () => {
  const script = 'console.log(JSON.stringify([process.argv.slice(1), process.version])); process.exitCode = 7'
  const { status, stdout } = spawnSync(process.execPath, [runner, 'node', '-e', script, 'one', 'two words'], {
    encoding: 'utf8',
    timeout: timeoutMs,
  })
  expect(status).toBe(7)
  expect(JSON.parse(stdout)).toEqual([['one', 'two words'], process.version])
})

test('an unknown command is reported in one sentence with exit code 1', () => {
  const { status, stderr } = spawnSync(process.execPath, [runner, 'no-such-command-here'], {
    encoding: 'utf8',
    timeout: timeoutMs,
  })
  expect([status, stderr]).toEqual([1, 'svc-router: there is no command no-such-command-here\n'])
})

test('SIGTERM reaches the command, which decides how to end', async () => {
  const script =
    'process.on("SIGTERM", () => { console.log("bye"); process.exit(5) }); setInterval(() => {}, 1000); console.log("up")'
  const child = spawn(process.execPath, [runner, 'node', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said === 'up\n') child.kill('SIGTERM')
    })
    const [code] = (await once(child, 'close', { signal: AbortSignal.timeout(timeoutMs) })) as [number | null]
    expect([code, said]).toEqual([5, 'up\nbye\n'])
  } finally {
    child.kill('SIGKILL')
  }
})

test('the program runs the sources directly and returns the exit codes of its commands', () => {
  const say = (...args: string[]) =>
    spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', timeout: timeoutMs, cwd: folder })
  expect(say('version')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^svc-router /) as string })
  expect(say('versoin')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringContaining('did you mean') as string,
  })
  expect(say('start', '--config', 'none.yaml').status).toBe(3)
  expect(say('keys', 'list').status).toBe(3)
})

test('the program replaces this process, keeps variables that are set, and names those that boot set', () => {
  const main = join(folder, 'main.mjs')
  writeFileSync(
    main,
    `const { MALLOC_ARENA_MAX, NODE_COMPILE_CACHE, SVC_ROUTER_SET_BY_BOOT } = process.env
    console.log(JSON.stringify([process.pid, process.execArgv, process.argv.slice(2), MALLOC_ARENA_MAX, NODE_COMPILE_CACHE, SVC_ROUTER_SET_BY_BOOT]))`,
  )
  const { value: flags } = evaluate('return b.nodeFlags')
  const source = `import * as b from ${JSON.stringify(bootUrl)}; await b.become(process.execPath, [...b.nodeFlags, ${JSON.stringify(main)}, 'two words'])`
  // What `npm test` sets makes the program watch npm, which is not the subject here.
  const isOwn = ([name]: [string, unknown]): boolean => !name.startsWith('npm_') && !name.startsWith('MALLOC_')
  const environment = Object.fromEntries(Object.entries(process.env).filter(isOwn))
  const cache = join(folder, 'cache')
  const { pid, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    timeout: timeoutMs,
    env: { ...environment, NODE_COMPILE_CACHE: cache },
  })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual([
    pid,
    flags,
    ['two words'],
    '2',
    cache,
    'MALLOC_ARENA_MAX,MALLOC_MMAP_THRESHOLD_,MALLOC_TRIM_THRESHOLD_',
  ])
})
