import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { evalFusion } from '../../src/cli/commands/eval.ts'
import { openEvalModels } from '../../src/eval-models.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Harness } from '../cli/harness.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/eval.md'), 'utf8')

let cli: Harness
beforeEach(() => {
  cli = new Harness()
  cli.isStoreReal = true
  cli.onStop = () => {}
  const parts = { clock: systemClock(), random: systemRandom() }
  const onBug = (error: unknown): void => {
    throw error
  }
  cli.openModels = (config, accountId, voice) => openEvalModels(config, { accountId, voice, ...parts, onBug })
})
afterEach(() => cli.remove())

/** Times differ from run to run, and with them the widths of columns. */
const timeless = (text: string): string =>
  text
    .replace(/\b[\d.]+ m?s\b/g, 'TIME')
    .replace(/ +/g, ' ')
    .trim()

test("the sample in docs/eval.md equals the command's output, except for times", async () => {
  const sample = /```text\n(.*?)```/s.exec(page)?.[1]
  await cli.say('accounts', 'create', 'me')
  const { out } = await cli.say('eval', '--seed', '7')
  expect(timeless(out)).toBe(timeless(sample ?? ''))
}, 60_000)

test('docs/eval.md lists exactly the existing options', () => {
  const named = new Set(Array.from(page.matchAll(/`--([a-z-]+)/g), ([, name]) => name))
  const known = evalFusion.options.map(({ name }) => name)
  for (const name of known) expect(page, name).toContain(`--${name}`)
  for (const name of named) expect([...known, 'json', 'dry-run']).toContain(name)
})
