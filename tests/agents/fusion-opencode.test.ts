import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { FusedService, fusion } from './fused-service.ts'
import { OpencodeHome } from './opencode-home.ts'
import { callOf, textAnswer } from './scripted-model.ts'

const panelMs = 60_000
const endpoints = [
  ['chat completions', undefined, '/v1/chat/completions'],
  ['responses', '@ai-sdk/openai', '/v1/responses'],
] as const
/** If the session already has a title, opencode does not request one from the model. */
const titled = ['--title', 'A title']

beforeAll(() => void OpencodeHome.install())

function configured({ endpoint }: FusedService, npm: string | undefined): OpencodeHome {
  const home = new OpencodeHome()
  home.configure(endpoint, { profile: fusion, ...(npm === undefined ? {} : { npm }) })
  return home
}

test.concurrent.each(endpoints)(
  'opencode over %s waits a minute for a panel with one request',
  async (_, npm, path) => {
    const respond = () => textAnswer('Written from all three.')
    await using fused = await FusedService.start({ format: 'openai-chat', panelMs, respond })
    using home = configured(fused, npm)
    const begunMs = performance.now()
    const { code, stdout, stderr } = await home.run([...titled, 'Say hello.'], fused.service.key, fusion)
    expect(code, stderr + stdout).toBe(0)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(stdout.trim()).toContain('Written from all three.')
    await fused.expectServed(1, path)
  },
)

test.concurrent.each(endpoints)(
  'opencode over %s writes a file in a tool loop, and the panel answers only the message of the user',
  async (_, npm, path) => {
    let filePath = ''
    await using fused = await FusedService.start({
      format: 'openai-chat',
      panelMs,
      respond: (conversation, role) =>
        role === 'writer'
          ? callOf(conversation, 'write', { filePath, content: 'made by opencode' })
          : textAnswer('Done.'),
    })
    using home = configured(fused, npm)
    filePath = join(home.work, 'made.txt')
    const { code, stdout, stderr } = await home.run([...titled, 'Make the file.'], fused.service.key, fusion)
    expect(code, stderr + stdout).toBe(0)
    expect(stdout).toContain('Done.')
    expect(readFileSync(filePath, 'utf8')).toBe('made by opencode')
    await fused.expectServed(2, path)
  },
)

test.concurrent('opencode requests the session title from the small model of docs/clients.md, without a deliberation', async () => {
  const [, lines] = documentedBlocks('opencode', 'json')
  const respond = () => textAnswer('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs: 1_000, respond })
  using home = new OpencodeHome()
  home.configure(fused.endpoint, { profile: fusion, lines: JSON.parse(lines!) as object })
  const { code, stdout, stderr } = await home.run(['Say hello.'], fused.service.key, fusion)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toContain('Written from all three.')
  expect(fused.roles.toSorted()).toEqual(['judge', 'panel', 'panel', 'panel', 'plain', 'writer'])
  const profiles = (await fused.service.requests()).map(({ profile }) => profile)
  expect(profiles.toSorted()).toEqual(['svc-router/frontier', fusion])
})
