import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLog } from '../../src/app/log.ts'

const failing = (reason: string) => ({ event: 'store_failing', reason }) as const

test('while a write hangs, the log keeps 10,000 lines in order, counts the dropped ones, and ends in bounded time', async () => {
  const texts: string[] = []
  let hanging = Promise.withResolvers<void>()
  const write = (text: string): Promise<void> => {
    texts.push(text)
    return hanging.promise
  }
  const { log, end } = openLog({ write, requests: false, nowMs: () => 0 })
  log(failing('first'))
  await expect.poll(() => texts.length).toBe(1)
  for (let line = 0; line < 10_500; line += 1) log(failing(String(line)))
  const startMs = performance.now()
  await end()
  expect(performance.now() - startMs).toBeLessThan(5_000)
  expect(texts).toHaveLength(1)
  const hung = hanging
  hanging = Promise.withResolvers()
  hanging.resolve()
  hung.resolve()
  await end()
  const lines = texts[1]!.trimEnd().split('\n')
  expect(lines).toHaveLength(10_001)
  expect(lines.map((line) => (JSON.parse(line) as { reason?: string }).reason).slice(0, 2)).toEqual(['0', '1'])
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ event: 'log_lines_dropped', dropped: 500 })
})

test('a pipe without a reader blocks neither the event loop nor the exit of the process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  const pipe = join(folder, 'pipe')
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  const writer = openSync(pipe, 'w')
  const script = `
    import { openLogOutput } from ${JSON.stringify(new URL('../../src/app/log-output.ts', import.meta.url).href)}
    void openLogOutput()('x'.repeat(1_000_000))
    setTimeout(() => process.stdout.write('alive'), 300)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', writer] })
  const exited = once(child, 'exit', { signal: AbortSignal.timeout(20_000) })
  let output = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (output += text))
  expect(await exited).toEqual([0, null])
  expect(output).toBe('alive')
  expect(readSync(reader, Buffer.alloc(10))).toBe(10)
  for (const each of [reader, writer]) closeSync(each)
  rmSync(folder, { recursive: true })
}, 30_000)
