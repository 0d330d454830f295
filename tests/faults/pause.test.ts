import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { expectWholeChat } from './event-stream.ts'
import { RawConnection, writePost } from './raw-client.ts'
import { settingsFor, openEventStream, startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts'
import { ServiceProcess } from './service-process.ts'

const pauseMs = 4_000
const streams = 10
const chunk = (text: string): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`
const last = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`
const ask = (content: string) => ({
  model: 'svc-router/frontier',
  stream: true,
  messages: [{ role: 'user', content }],
})

/** Half of the streams have content before the pause, and half wait for it. */
describe('a process that is paused for longer than any of its limits', { timeout: 60_000 }, () => {
  let folder: string
  let upstream: ScriptedUpstream
  let service: ServiceProcess
  let started: string[]
  let silent: string[]

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-pause-'))
    upstream = await startScriptedUpstream()
    service = new ServiceProcess(folder, [], {
      ...settingsFor(upstream, 'openai-chat', { first_content: '2s', idle: '2s', connect: '1s' }),
    })
    await service.start()
    const waiting: ServerResponse[] = []
    upstream.answer = (_request, response) => {
      openEventStream(response)
      if (upstream.bodies.at(-1)!.includes('begin')) response.write(chunk('Hello'))
      waiting.push(response)
    }
    const askAll = (content: string) =>
      Array.from({ length: streams }, () =>
        new RawConnection(service.port).ask(writePost('/chat/completions', service.key, ask(content))),
      )
    const answers = { started: askAll('begin'), silent: askAll('wait') }
    await vi.waitFor(() => expect(waiting).toHaveLength(2 * streams), { timeout: 5_000 })
    await sleep(500)
    service.running.kill('SIGSTOP')
    await sleep(pauseMs)
    service.running.kill('SIGCONT')
    // Some answer only after the first timers could have run.
    for (const [index, response] of waiting.entries())
      setTimeout(() => response.end(chunk(' world') + last), index % 2 === 0 ? 0 : 800)
    started = (await Promise.all(answers.started)).map(({ body }) => body)
    silent = (await Promise.all(answers.silent)).map(({ body }) => body)
  }, 60_000)

  afterAll(async () => {
    service.running.kill('SIGCONT')
    await service.destroy()
    await upstream.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('closes no stream that has started', () => {
    expect(started.map(expectWholeChat)).toEqual(started.map(() => 'Hello world'))
    expect(upstream.bodies.filter((body) => body.includes('begin'))).toHaveLength(streams)
  })

  test('closes no stream that waits for its first content', () => {
    expect(silent.map(expectWholeChat)).toEqual(silent.map(() => ' world'))
    expect(upstream.bodies.filter((body) => body.includes('wait'))).toHaveLength(streams)
  })
})
