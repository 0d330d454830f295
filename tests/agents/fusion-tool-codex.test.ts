import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { CodexHome, expectPatient, impatient, inItsFolder, patch } from './codex-home.ts'
import { askedFirst, askingFirst, callAfter, callAlong, FusedService, toolTurn, type Calling } from './fused-service.ts'
import { say } from './scripted-model.ts'

/** The tool svc-router:fusion in all that Codex asks svc-router/frontier, by the header of docs/clients.md. */
const attached = documentedBlocks('Deliberated answers', 'toml')[0]!
const panelMs = 60_000
const formats = ['openai-chat', 'openai-responses'] as const

beforeAll(() => void CodexHome.install())

test.concurrent.each(formats)(
  'Codex with an idle limit of 3 s waits a minute for those whom its model asks by the tool, models that speak %s: one request, and it never connects again',
  async (format) => {
    using home = new CodexHome()
    const speak = askingFirst(() => say('Written from all three.'))
    await using fused = await FusedService.start({ format, panelMs, speak })
    home.configure(fused.endpoint, { end: attached + impatient })
    const begunMs = performance.now()
    const finished = await home.run(['Say hello.'], fused.service.key)
    expectPatient(finished)
    expect(performance.now() - begunMs).toBeGreaterThan(panelMs)
    expect(finished.stdout.trim()).toBe('Written from all three.')
    await fused.expectTurns([toolTurn], '/v1/responses')
  },
)

test.concurrent('Codex waits as long where all are asked first, whatever the model wants', async () => {
  using home = new CodexHome()
  const speak = () => say('Written from all three.')
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, speak })
  const always = attached.replace('svc-router:fusion', 'svc-router:fusion;mode=always')
  home.configure(fused.endpoint, { end: always + impatient })
  const finished = await home.run(['Say hello.'], fused.service.key)
  expectPatient(finished)
  expect(finished.stdout.trim()).toBe('Written from all three.')
  await fused.expectTurns([askedFirst], '/v1/responses')
})

test.concurrent('Codex over a WebSocket waits a minute for them, too', async () => {
  using home = new CodexHome()
  const speak = askingFirst(() => say('Written from all three.'))
  await using fused = await FusedService.start({ format: 'openai-chat', panelMs, speak })
  home.configure(fused.endpoint, { end: `${attached}${impatient}supports_websockets = true\n` })
  const finished = await home.run(['Say hello.'], fused.service.key)
  expectPatient(finished)
  expect(finished.stdout.trim()).toBe('Written from all three.')
  expect(fused.lines.seen).toEqual(['GET /v1/responses'])
  expect(fused.roles).toEqual(toolTurn)
})

/** Its model calls its own tool, which writes the file. */
async function expectFileMade(format: (typeof formats)[number], { speak, turns }: Calling): Promise<void> {
  using home = new CodexHome()
  await using fused = await FusedService.start({ format, panelMs: 4_000, speak: speak('apply_patch', patch) })
  await home.configureWithModels({ ...fused.endpoint, key: fused.service.key }, attached + impatient)
  const finished = await home.run(['Make the file.'], fused.service.key, inItsFolder)
  expectPatient(finished)
  expect(finished.stdout).toContain('Done.')
  expect(readFileSync(join(home.work, 'made.txt'), 'utf8')).toBe('made by Codex\n')
  await fused.expectTurns(turns, '/v1/responses')
}

test.concurrent.each(formats)(
  'Codex writes a file by its own tool once its model has asked the others, models that speak %s',
  (format) => expectFileMade(format, callAfter),
)

test.concurrent.each(formats)(
  'Codex writes a file that its model asks for in the same breath as the others, who are asked when it is written, models that speak %s',
  (format) => expectFileMade(format, callAlong),
)
