import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { askedFirst, askingFirst, callAfter, callAlong, FusedService, toolTurn, type Calling } from './fused-service.ts'
import { OpencodeHome } from './opencode-home.ts'
import { say } from './scripted-model.ts'

/** The tool svc-router:fusion in all that opencode asks svc-router/frontier, by the header of docs/clients.md. */
const attached = documentedBlocks('Deliberated answers', 'json')[0]!
const panelMs = 60_000
const spoken = [
  ['chat completions', undefined, '/v1/chat/completions'],
  ['responses', '@ai-sdk/openai', '/v1/responses'],
] as const
/** With a title of its own a session does not ask for one, which would be a turn of its own. */
const titled = ['--title', 'A title']

beforeAll(() => void OpencodeHome.install())

function configure(home: OpencodeHome, { endpoint }: FusedService, npm: string | undefined, text = attached): void {
  const { provider } = JSON.parse(text) as { provider: { 'svc-router': { options: object } } }
  home.configure(endpoint, { options: provider['svc-router'].options, ...(npm === undefined ? {} : { npm }) })
}

test.concurrent.each(spoken)(
  'opencode over %s waits a minute for those whom its model asks by the tool, with one request',
  async (_, npm, path) => {
    const speak = askingFirst(() => say('Written from all three.'))
    await using fused = await FusedService.start({ format: 'openai-chat', panelMs, speak })
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

test.concurrent('opencode waits as long where all are asked first, whatever the model wants', async () => {
  const speak = () => say('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, speak })
  using home = new OpencodeHome()
  configure(home, fused, undefined, attached.replace('svc-router:fusion', 'svc-router:fusion;mode=always'))
  const { code, stdout, stderr } = await home.run([...titled, 'Say hello.'], fused.service.key)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout.trim()).toContain('Written from all three.')
  await fused.expectTurns([askedFirst], '/v1/chat/completions')
})

/** Its model calls its own tool, which writes the file. */
async function expectFileMade(npm: string | undefined, path: string, { speak, turns }: Calling): Promise<void> {
  using home = new OpencodeHome()
  const filePath = join(home.work, 'made.txt')
  await using fused = await FusedService.start({
    format: 'openai-chat',
    panelMs: 1_000,
    speak: speak('write', { filePath, content: 'made by opencode' }),
  })
  configure(home, fused, npm)
  const { code, stdout, stderr } = await home.run([...titled, 'Make the file.'], fused.service.key)
  expect(code, stderr + stdout).toBe(0)
  expect(stdout).toContain('Done.')
  expect(readFileSync(filePath, 'utf8')).toBe('made by opencode')
  await fused.expectTurns(turns, path)
}

test.concurrent.each(spoken)(
  'opencode over %s writes a file by its own tool once its model has asked the others',
  (_, npm, path) => expectFileMade(npm, path, callAfter),
)

test.concurrent.each(spoken)(
  'opencode over %s writes a file that its model asks for in the same breath as the others, who are asked when it is written',
  (_, npm, path) => expectFileMade(npm, path, callAlong),
)
