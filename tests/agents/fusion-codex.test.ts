import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { CodexHome, expectNoRetry, shortIdleLimit, withoutSandbox, patch } from './codex-home.ts'
import { FusedService, fusion } from './fused-service.ts'
import { callOf, textAnswer } from './scripted-model.ts'

const panelMs = 60_000
const websockets = 'supports_websockets = true\n'

beforeAll(() => void CodexHome.install())

test.concurrent.each(['openai-chat', 'openai-responses'] as const)(
  'Codex with an idle limit of 3 s waits a minute for a panel of format %s with one request and never reconnects',
  async (format) => {
    using home = new CodexHome()
    await using fused = await FusedService.start({
      format,
      panelMs,
      respond: () => textAnswer('Written from all three.'),
    })
    home.configure(fused.endpoint, { end: shortIdleLimit })
    const begunMs = performance.now()
    const finished = await home.run(['-m', fusion, 'Say hello.'], fused.service.key)
    expectNoRetry(finished)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(finished.stdout.trim()).toBe('Written from all three.')
    await fused.expectServed(1, '/v1/responses')
  },
)

test.concurrent('Codex over a WebSocket waits a minute for a panel', async () => {
  using home = new CodexHome()
  const respond = () => textAnswer('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
  home.configure(fused.endpoint, { end: shortIdleLimit + websockets })
  const finished = await home.run(['-m', fusion, 'Say hello.'], fused.service.key)
  expectNoRetry(finished)
  expect(finished.stdout.trim()).toBe('Written from all three.')
  expect(fused.lines.seen).toEqual(['GET /v1/responses'])
  expect(fused.roles).toEqual(['panel', 'panel', 'panel', 'judge', 'writer'])
})

test.concurrent.each(['openai-chat', 'openai-responses'] as const)(
  'Codex writes a file in a tool loop with models of format %s, and the panel answers only the message of the user',
  async (format) => {
    using home = new CodexHome()
    await using fused = await FusedService.start({
      format,
      panelMs,
      respond: (conversation, role) =>
        role === 'writer' ? callOf(conversation, 'apply_patch', patch) : textAnswer('Done.'),
    })
    await home.configureWithModels({ ...fused.endpoint, key: fused.service.key }, shortIdleLimit)
    const finished = await home.run(['-m', fusion, 'Make the file.'], fused.service.key, withoutSandbox)
    expectNoRetry(finished)
    expect(finished.stdout).toContain('Done.')
    expect(readFileSync(join(home.work, 'made.txt'), 'utf8')).toBe('made by Codex\n')
    await fused.expectServed(2, '/v1/responses')
  },
)
