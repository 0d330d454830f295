import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { expectWholeChat } from './event-stream.ts'
import { RawConnection, writePost } from './raw-client.ts'
import { settingsFor, openEventStream, startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts'
import { ServiceProcess } from './service-process.ts'

const pauseMs = 4_000
const streams = 20
const chunk = (text: string): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`
const last = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`
const question = { model: 'svc-router/frontier', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

let folder: string
let upstream: ScriptedUpstream
let service: ServiceProcess
let waiting: ServerResponse[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-pause-'))
  waiting = []
  upstream = await startScriptedUpstream()
  service = new ServiceProcess(folder, [], {
    ...settingsFor(upstream, 'openai-chat', { first_content: '2s', idle: '2s', connect: '1s' }),
  })
  await service.start()
})

afterEach(async () => {
  service.running.kill('SIGCONT')
  await service.destroy()
  await upstream.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Opens the streams, pauses the process for longer than any of its limits, and returns the answers. */
async function pauseWith(begin: (response: ServerResponse) => void): Promise<string[]> {
  upstream.answer = (_request, response) => {
    openEventStream(response)
    begin(response)
    waiting.push(response)
  }
  const answers = Array.from({ length: streams }, () =>
    new RawConnection(service.port).ask(writePost('/chat/completions', service.key, question)),
  )
  await expect.poll(() => waiting.length, { timeout: 5_000 }).toBe(streams)
  await sleep(500)
  service.running.kill('SIGSTOP')
  await sleep(pauseMs)
  service.running.kill('SIGCONT')
  // Some answer only after the first timers could have run.
  for (const [index, response] of waiting.entries())
    setTimeout(() => response.end(chunk(' world') + last), index % 2 === 0 ? 0 : 800)
  return Promise.all(answers.map(async (answer) => expectWholeChat((await answer).body)))
}

test('a paused process closes no stream that has started', async () => {
  const texts = await pauseWith((response) => response.write(chunk('Hello')))
  expect(texts).toEqual(texts.map(() => 'Hello world'))
  expect(upstream.bodies.length).toBe(streams)
})

test('a paused process closes no stream that waits for its first content', async () => {
  const texts = await pauseWith(() => {})
  expect(texts).toEqual(texts.map(() => ' world'))
  expect(upstream.bodies.length).toBe(streams)
})
