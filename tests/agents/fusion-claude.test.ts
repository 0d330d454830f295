import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ClaudeHome } from './claude-home.ts'
import { FusedService, fusion } from './fused-service.ts'
import { callOf, textAnswer } from './scripted-model.ts'

const panelMs = 60_000
const formats = ['openai-chat', 'anthropic-messages'] as const

beforeAll(() => void ClaudeHome.install())

test.concurrent.each(formats)(
  'Claude Code waits a minute for a panel of format %s with one request',
  async (format) => {
    using home = new ClaudeHome()
    await using fused = await FusedService.start({
      format,
      panelMs,
      respond: () => textAnswer('Written from all three.'),
    })
    const begunMs = performance.now()
    const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Say hello.', { model: fusion })
    expect(code, stderr + stdout).toBe(0)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(stdout.trim()).toBe('Written from all three.')
    await fused.expectServed(1, '/v1/messages')
  },
)

test.concurrent.each(formats)(
  'Claude Code writes a file in a tool loop with models of format %s, and the panel answers only the message of the user',
  async (format) => {
    using home = new ClaudeHome()
    const file_path = join(home.work, 'made.txt')
    await using fused = await FusedService.start({
      format,
      panelMs,
      respond: (conversation, role) =>
        role === 'writer'
          ? callOf(conversation, 'Write', { file_path, content: 'made by Claude' })
          : textAnswer('Done.'),
    })
    const options = { model: fusion, args: ['--allowedTools', 'Write'] }
    const { code, stdout, stderr } = await home.run(fused.endpoint, fused.service.key, 'Make the file.', options)
    expect(code, stderr + stdout).toBe(0)
    expect(stdout.trim()).toBe('Done.')
    expect(readFileSync(file_path, 'utf8')).toBe('made by Claude')
    await fused.expectServed(2, '/v1/messages')
  },
)
