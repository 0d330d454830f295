import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../bin/boot.mjs'

const program = join(import.meta.dirname, 'worker-program.ts')
/** Longer than a worker that does not hang takes to start on a busy machine. */
const startLimitMs = 2_500
const limitMs = 60_000

let folder: string
let parent: ChildProcess | undefined
/** Every worker that was started. */
let workers: number[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-workers-'))
  workers = []
})
afterEach(() => {
  parent?.kill('SIGKILL')
  for (const pid of workers) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

interface Line {
  readonly spawned?: number
  readonly died?: string
  readonly started?: true
  readonly failed?: string
}

/** Starts a parent with one worker, whose start with this number hangs. */
function startParent(hangs: number, more: NodeJS.ProcessEnv = {}): () => Promise<Line> {
  const env = {
    PATH: process.env['PATH'],
    ...nodeEnvironment,
    LOG: join(folder, 'starts'),
    HANGS: String(hangs),
    START_LIMIT_MS: String(startLimitMs),
    ...more,
  }
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'], env })
  parent = child
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async () => {
    const { value } = (await lines.next()) as { readonly value?: string }
    const line = JSON.parse(value ?? '{}') as Line
    if (line.spawned !== undefined) workers.push(line.spawned)
    return line
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test(
  'a replacement that hangs before it listens is killed and replaced, and one that listens is not',
  async () => {
    const next = startParent(2)
    expect(await next()).toEqual({ spawned: expect.any(Number) })
    expect(await next()).toEqual({ started: true })
    process.kill(workers[0]!, 'SIGKILL')
    expect(await next()).toEqual({ died: 'SIGKILL' })
    expect(await next()).toEqual({ spawned: expect.any(Number) })
    const hangsSinceMs = performance.now()
    expect(await next()).toEqual({ died: 'start_timeout' })
    expect(performance.now() - hangsSinceMs).toBeGreaterThan(startLimitMs - 100)
    expect(isAlive(workers[1]!)).toBe(false)
    expect(await next()).toEqual({ spawned: expect.any(Number) })
    const later = await Promise.race([
      next(),
      new Promise((resolve) => setTimeout(resolve, startLimitMs + 500, 'alive')),
    ])
    expect(later).toBe('alive')
    expect(isAlive(workers[2]!)).toBe(true)
  },
  limitMs,
)

test(
  'a worker that hangs at the first start is killed, and the service does not start',
  async () => {
    const next = startParent(1)
    expect(await next()).toEqual({ spawned: expect.any(Number) })
    expect(await next()).toEqual({ failed: 'a worker did not start' })
    await once(parent!, 'exit')
    expect(isAlive(workers[0]!)).toBe(false)
  },
  limitMs,
)

test(
  'a worker that cannot be spawned is tried again, and does not count as a process that started',
  async () => {
    const next = startParent(0, { VANISHES: '' })
    expect(await next()).toEqual({ spawned: expect.any(Number) })
    expect(await next()).toEqual({ started: true })
    process.kill(workers[0]!, 'SIGKILL')
    expect(await next()).toEqual({ died: 'SIGKILL' })
    expect(await next()).toEqual({ died: 'ENOENT' })
    expect(await next()).toEqual({ died: 'ENOENT' })
  },
  limitMs,
)
