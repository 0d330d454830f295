import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { runRandomFusions } from './random-fusions.ts'

const count = casesOf({ sample: 2_000, all: 20_000 })

test(`${count} random fusions, simulated: each ends, has consistent costs, leaks nothing, and answers if any member answered`, async () => {
  const tally = await runRandomFusions(count, 1)
  // Every outcome occurred often enough to be meaningful.
  for (const name of [
    'adopted',
    'agreed',
    'synthesised',
    'restarted',
    'single',
    'medoid',
    'merged',
    'refused',
    'fallback',
  ])
    expect(tally.get(name) ?? 0, name).toBeGreaterThan(count / 400)
  for (const name of ['upstream_broken', 'server_is_overloaded', 'upstream_timeout', 'left'])
    expect(tally.get(name) ?? 0, name).toBeGreaterThan(count / 400)
}, 180_000)
