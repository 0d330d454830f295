import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { CodexHome, expectNoRetry, shortIdleLimit, withoutSandbox, patch } from './codex-home.ts'
import {
  deliberationFirst,
  fusionToolFirst,
  agentToolAfterFusion,
  agentToolWithFusion,
  FusedService,
  toolTurn,
  type AgentToolScenario,
} from './fused-service.ts'
import { textAnswer } from './scripted-model.ts'

/** Adds the tool `svc-router:fusion` to every request of Codex, with the header of docs/clients.md. */
const attached = documentedBlocks('Deliberated answers', 'toml')[0]!
const panelMs = 60_000
const formats = ['openai-chat', 'openai-responses'] as const

beforeAll(() => void CodexHome.install())

test.concurrent.each(formats)(
  'Codex with an idle limit of 3 s waits a minute for the fusion tool with models of format %s and one request, and never reconnects',
  async (format) => {
    using home = new CodexHome()
    const respond = fusionToolFirst(() => textAnswer('Written from all three.'))
    await using fused = await FusedService.start({ format, panelMs, respond })
    home.configure(fused.endpoint, { end: attached + shortIdleLimit })
    const begunMs = performance.now()
    const finished = await home.run(['Say hello.'], fused.service.key)
    expectNoRetry(finished)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(finished.stdout.trim()).toBe('Written from all three.')
    await fused.expectTurns([toolTurn], '/v1/responses')
  },
)

test.concurrent('Codex waits if a deliberation always comes first', async () => {
  using home = new CodexHome()
  const respond = () => textAnswer('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
  const always = attached.replace('svc-router:fusion', 'svc-router:fusion;mode=always')
  home.configure(fused.endpoint, { end: always + shortIdleLimit })
  const finished = await home.run(['Say hello.'], fused.service.key)
  expectNoRetry(finished)
  expect(finished.stdout.trim()).toBe('Written from all three.')
  await fused.expectTurns([deliberationFirst], '/v1/responses')
})

test.concurrent('Codex over a WebSocket waits a minute for the fusion tool', async () => {
  using home = new CodexHome()
  const respond = fusionToolFirst(() => textAnswer('Written from all three.'))
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
  home.configure(fused.endpoint, { end: `${attached}${shortIdleLimit}supports_websockets = true\n` })
  const finished = await home.run(['Say hello.'], fused.service.key)
  expectNoRetry(finished)
  expect(finished.stdout.trim()).toBe('Written from all three.')
  expect(fused.lines.seen).toEqual(['GET /v1/responses'])
  expect(fused.roles).toEqual(toolTurn)
})

/** Expects that the model calls the agent's tool, which writes the file. */
async function expectFileMade(format: (typeof formats)[number], { respond, turns }: AgentToolScenario): Promise<void> {
  using home = new CodexHome()
  await using fused = await FusedService.start({ format, panelMs: 4_000, respond: respond('apply_patch', patch) })
  await home.configureWithModels({ ...fused.endpoint, key: fused.service.key }, attached + shortIdleLimit)
  const finished = await home.run(['Make the file.'], fused.service.key, withoutSandbox)
  expectNoRetry(finished)
  expect(finished.stdout).toContain('Done.')
  expect(readFileSync(join(home.work, 'made.txt'), 'utf8')).toBe('made by Codex\n')
  await fused.expectTurns(turns, '/v1/responses')
}

test.concurrent.each(formats)(
  'Codex writes a file with its own tool after its model called the fusion tool, with models of format %s',
  (format) => expectFileMade(format, agentToolAfterFusion),
)

test.concurrent.each(formats)(
  'Codex writes a file if its model calls both tools at once, and the deliberation follows, with models of format %s',
  (format) => expectFileMade(format, agentToolWithFusion),
)
