import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { CodexHome, expectPatient, impatient, inItsFolder, patch } from './codex-home.ts'
import { FusedService, fusion } from './fused-service.ts'
import { callOf, say } from './scripted-model.ts'

const panelMs = 60_000
const websockets = 'supports_websockets = true\n'

beforeAll(() => void CodexHome.install())

test.concurrent.each(['openai-chat', 'openai-responses'] as const)(
  'Codex with an idle limit of 3 s waits a minute for a panel that speaks %s: one request, and it never connects again',
  async (format) => {
    using home = new CodexHome()
    await using fused = await FusedService.start({ format, panelMs, speak: () => say('Written from all three.') })
    home.configure(fused.endpoint, { end: impatient })
    const begunMs = performance.now()
    const finished = await home.run(['-m', fusion, 'Say hello.'], fused.service.key)
    expectPatient(finished)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(finished.stdout.trim()).toBe('Written from all three.')
    await fused.expectServed(1, '/v1/responses')
  },
)

test.concurrent('Codex over a WebSocket waits a minute for a panel, too', async () => {
  using home = new CodexHome()
  const speak = () => say('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, speak })
  home.configure(fused.endpoint, { end: impatient + websockets })
  const finished = await home.run(['-m', fusion, 'Say hello.'], fused.service.key)
  expectPatient(finished)
  expect(finished.stdout.trim()).toBe('Written from all three.')
  expect(fused.lines.seen).toEqual(['GET /v1/responses'])
  expect(fused.roles).toEqual(['panel', 'panel', 'panel', 'judge', 'writer'])
})

test.concurrent.each(['openai-chat', 'openai-responses'] as const)(
  'Codex writes a file in a tool loop, with models that speak %s: the panel is asked once, for what the user said',
  async (format) => {
    using home = new CodexHome()
    await using fused = await FusedService.start({
      format,
      panelMs,
      speak: (conversation, role) => (role === 'writer' ? callOf(conversation, 'apply_patch', patch) : say('Done.')),
    })
    await home.configureWithModels({ ...fused.endpoint, key: fused.service.key }, impatient)
    const finished = await home.run(['-m', fusion, 'Make the file.'], fused.service.key, inItsFolder)
    expectPatient(finished)
    expect(finished.stdout).toContain('Done.')
    expect(readFileSync(join(home.work, 'made.txt'), 'utf8')).toBe('made by Codex\n')
    await fused.expectServed(2, '/v1/responses')
  },
)
