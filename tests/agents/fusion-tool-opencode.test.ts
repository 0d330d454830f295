import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import {
  deliberationFirst,
  fusionToolFirst,
  agentToolAfterFusion,
  agentToolWithFusion,
  FusedService,
  toolTurn,
  type AgentToolScenario,
} from './fused-service.ts'
import { OpencodeHome } from './opencode-home.ts'
import { textAnswer } from './scripted-model.ts'

/** Adds the tool `svc-router:fusion` to every request of opencode, with the header of docs/clients.md. */
const attached = documentedBlocks('Deliberated answers', 'json')[0]!
const panelMs = 60_000
const endpoints = [
  ['chat completions', undefined, '/v1/chat/completions'],
  ['responses', '@ai-sdk/openai', '/v1/responses'],
] as const
/** If the session already has a title, opencode does not request one from the model. */
const titled = ['--title', 'A title']

beforeAll(() => void OpencodeHome.install())

function configure(home: OpencodeHome, { endpoint }: FusedService, npm: string | undefined, text = attached): void {
  const { provider } = JSON.parse(text) as { provider: { 'svc-router': { options: object } } }
  home.configure(endpoint, { options: provider['svc-router'].options, ...(npm === undefined ? {} : { npm }) })
}

test.concurrent.each(endpoints)(
  'opencode over %s waits a minute for the fusion tool with one request',
  async (_, npm, path) => {
    const respond = fusionToolFirst(() => textAnswer('Written from all three.'))
    await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
    using home = new OpencodeHome()
    configure(home, fused, npm)
    const begunMs = performance.now()
    const { code, stdout, stderr } = await home.run([...titled, 'Say hello.'], fused.service.key)
    expect(code, stderr + stdout).toBe(0)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(stdout.trim()).toContain('Written from all three.')
    await fused.expectTurns([toolTurn], path)
  },
)

test.concurrent('opencode waits if a deliberation always comes first', async () => {
  const respond = () => textAnswer('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
  using home = new OpencodeHome()
  configure(home, fused, undefined, attached.replace('svc-router:fusion', 'svc-router:fusion;mode=always'))
  const { code, stdout, stderr } = await home.run([...titled, 'Say hello.'], fused.service.key)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toContain('Written from all three.')
  await fused.expectTurns([deliberationFirst], '/v1/chat/completions')
})

/** Expects that the model calls the agent's tool, which writes the file. */
async function expectFileMade(
  npm: string | undefined,
  path: string,
  { respond, turns }: AgentToolScenario,
): Promise<void> {
  using home = new OpencodeHome()
  const filePath = join(home.work, 'made.txt')
  await using fused = await FusedService.start({
    format: 'openai-chat',
    panelMs: 1_000,
    respond: respond('write', { filePath, content: 'made by opencode' }),
  })
  configure(home, fused, npm)
  const { code, stdout, stderr } = await home.run([...titled, 'Make the file.'], fused.service.key)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout).toContain('Done.')
  expect(readFileSync(filePath, 'utf8')).toBe('made by opencode')
  await fused.expectTurns(turns, path)
}

test.concurrent.each(endpoints)(
  'opencode over %s writes a file with its own tool after its model called the fusion tool',
  (_, npm, path) => expectFileMade(npm, path, agentToolAfterFusion),
)

test.concurrent.each(endpoints)(
  'opencode over %s writes a file if its model calls both tools at once, and the deliberation follows',
  (_, npm, path) => expectFileMade(npm, path, agentToolWithFusion),
)
