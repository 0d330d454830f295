import { once } from 'node:events'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { documentedBlocks } from '../clients/docs.ts'
import { CodexHome, weatherServer } from './codex-home.ts'
import { OneBackend } from './one-backend.ts'
import type { Finished } from './program.ts'
import { RequestLines } from './request-lines.ts'

/** The limit of open WebSockets for one account. */
const maxSockets = 256

let home: CodexHome
let backend: OneBackend
let lines: RequestLines

beforeAll(() => void CodexHome.install())
beforeEach(() => {
  home = new CodexHome()
})
afterEach(async () => {
  await lines[Symbol.asyncDispose]()
  await backend[Symbol.asyncDispose]()
  home[Symbol.dispose]()
})

async function start(format: 'openai-chat' | 'openai-responses'): Promise<void> {
  backend = await OneBackend.start(format)
  lines = await RequestLines.start(backend.service.baseUrl)
}

/** Runs Codex with the configuration of docs/clients.md and its line for WebSockets. */
function codex(prompt: string): Promise<Finished> {
  const websockets = documentedBlocks('Codex', 'toml')[2]!
  expect(websockets).toBe('supports_websockets = true\n')
  home.configure(lines, { end: websockets + weatherServer })
  return home.run([prompt], backend.service.key)
}

test.each(['openai-chat', 'openai-responses'] as const)(
  'Codex finishes a prompt over one WebSocket and sends no POST, with a backend of format %s',
  async (format) => {
    await start(format)
    const { code, stdout, stderr } = await codex('Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout.trim()).toBe('This is a simulated answer from alpha. You said: "Say hello.".')
    expect(stderr).not.toMatch(/ERROR|Reconnecting|WARN/)
    expect(lines.seen).toEqual(['GET /v1/responses'])
    await backend.expectServed(1, 'openai-responses')
  },
)

test.each(['openai-chat', 'openai-responses'] as const)(
  'Codex calls a tool, answers with its result over one WebSocket, and sends no POST, with a backend of format %s',
  async (format) => {
    await start(format)
    const { code, stdout, stderr } = await codex('What is the weather in Oslo?')
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('weather/get_weather (completed)')
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    expect(lines.seen).toEqual(['GET /v1/responses'])
    // Codex sends only the new messages, but the backend receives the whole conversation.
    expect(backend.lastBody()).toContain('What is the weather in Oslo?')
    await backend.expectServed(2, 'openai-responses')
  },
)

test('Codex uses HTTP if the service accepts no more WebSockets', async () => {
  await start('openai-responses')
  const url = `${backend.service.baseUrl.replace('http', 'ws')}/responses`
  const sockets = Array.from(
    { length: maxSockets },
    () => new WebSocket(url, { headers: { authorization: `Bearer ${backend.service.key}` } }),
  )
  await Promise.all(sockets.map((socket) => once(socket, 'open')))
  const { code, stdout, stderr } = await codex('Say hello.')
  for (const socket of sockets) socket.terminate()
  expect(code, stderr).toBe(0)
  expect(stdout).toContain('You said: "Say hello.".')
  expect(stderr).not.toContain('Reconnecting')
  expect(lines.seen.at(-1)).toBe('POST /v1/responses')
  expect(lines.seen.filter((line) => line.startsWith('POST'))).toHaveLength(1)
  await backend.expectServed(1, 'openai-responses')
})
