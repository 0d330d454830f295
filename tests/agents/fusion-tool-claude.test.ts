import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { ClaudeHome } from './claude-home.ts'
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

/** Adds the tool `svc-router:fusion` to every request of Claude Code, with the header of docs/clients.md. */
const lines = documentedBlocks('Deliberated answers', 'sh')[0]!
const panelMs = 60_000
const formats = ['openai-chat', 'anthropic-messages'] as const

beforeAll(() => void ClaudeHome.install())

test.concurrent.each(formats)(
  'Claude Code waits a minute for the fusion tool with models of format %s and one request',
  async (format) => {
    using home = new ClaudeHome()
    const respond = fusionToolFirst(() => textAnswer('Written from all three.'))
    await using fused = await FusedService.start({ format, panelMs, respond })
    const begunMs = performance.now()
    const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Say hello.', { lines })
    expect(code, stderr + stdout).toBe(0)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(stdout.trim()).toBe('Written from all three.')
    await fused.expectTurns([toolTurn], '/v1/messages')
  },
)

test.concurrent('Claude Code waits if a deliberation always comes first', async () => {
  using home = new ClaudeHome()
  const respond = () => textAnswer('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
  const always = lines.replace('svc-router:fusion', 'svc-router:fusion;mode=always')
  const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Say hello.', { lines: always })
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toBe('Written from all three.')
  await fused.expectTurns([deliberationFirst], '/v1/messages')
})

/** Expects that the model calls the agent's tool, which writes the file. */
async function expectFileMade(format: (typeof formats)[number], { respond, turns }: AgentToolScenario): Promise<void> {
  using home = new ClaudeHome()
  const file_path = join(home.work, 'made.txt')
  await using fused = await FusedService.start({
    format,
    panelMs: 1_000,
    respond: respond('Write', { file_path, content: 'made by Claude' }),
  })
  const options = { lines, args: ['--allowedTools', 'Write'] }
  const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Make the file.', options)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toBe('Done.')
  expect(readFileSync(file_path, 'utf8')).toBe('made by Claude')
  await fused.expectTurns(turns, '/v1/messages')
}

test.concurrent.each(formats)(
  'Claude Code writes a file with its own tool after its model called the fusion tool, with models of format %s',
  (format) => expectFileMade(format, agentToolAfterFusion),
)

test.concurrent('Claude Code writes a file if its model calls both tools at once, and the deliberation follows', () =>
  expectFileMade('openai-chat', agentToolWithFusion))
