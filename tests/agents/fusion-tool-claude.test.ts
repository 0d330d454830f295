import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { ClaudeHome } from './claude-home.ts'
import { askedFirst, askingFirst, callAfter, callAlong, FusedService, toolTurn, type Calling } from './fused-service.ts'
import { say } from './scripted-model.ts'

/** The tool svc-router:fusion in all that Claude Code asks svc-router/frontier, by the header of docs/clients.md. */
const lines = documentedBlocks('Deliberated answers', 'sh')[0]!
const panelMs = 60_000
const formats = ['openai-chat', 'anthropic-messages'] as const

beforeAll(() => void ClaudeHome.install())

test.concurrent.each(formats)(
  'Claude Code waits a minute for those whom its model asks by the tool, models that speak %s: one request',
  async (format) => {
    using home = new ClaudeHome()
    const speak = askingFirst(() => say('Written from all three.'))
    await using fused = await FusedService.start({ format, panelMs, speak })
    const begunMs = performance.now()
    const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Say hello.', { lines })
    expect(code, stderr + stdout).toBe(0)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(stdout.trim()).toBe('Written from all three.')
    await fused.expectTurns([toolTurn], '/v1/messages')
  },
)

test.concurrent('Claude Code waits as long where all are asked first, whatever the model wants', async () => {
  using home = new ClaudeHome()
  const speak = () => say('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, speak })
  const always = lines.replace('svc-router:fusion', 'svc-router:fusion;mode=always')
  const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Say hello.', { lines: always })
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toBe('Written from all three.')
  await fused.expectTurns([askedFirst], '/v1/messages')
})

/** Its model calls its own tool, which writes the file. */
async function expectFileMade(format: (typeof formats)[number], { speak, turns }: Calling): Promise<void> {
  using home = new ClaudeHome()
  const file_path = join(home.work, 'made.txt')
  await using fused = await FusedService.start({
    format,
    panelMs: 1_000,
    speak: speak('Write', { file_path, content: 'made by Claude' }),
  })
  const options = { lines, args: ['--allowedTools', 'Write'] }
  const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Make the file.', options)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toBe('Done.')
  expect(readFileSync(file_path, 'utf8')).toBe('made by Claude')
  await fused.expectTurns(turns, '/v1/messages')
}

test.concurrent.each(formats)(
  'Claude Code writes a file by its own tool once its model has asked the others, models that speak %s',
  (format) => expectFileMade(format, callAfter),
)

test.concurrent('Claude Code writes a file that its model asks for in the same breath as the others, who are asked when it is written', () =>
  expectFileMade('openai-chat', callAlong))
