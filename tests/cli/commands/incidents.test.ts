import { afterEach, beforeEach, expect, test } from 'vitest'
import { Harness } from '../harness.ts'

let harness: Harness
beforeEach(() => {
  harness = new Harness()
})
afterEach(() => harness.remove())

test('an incident can be opened, updated, listed, and resolved', async () => {
  const opened = await harness.say('incidents', 'open', 'Slow answers', 'We look into it.', '--impact', 'major')
  expect(opened.code).toBe(0)
  const id = opened.out.trim()
  expect(id).toMatch(/^inc_/)
  expect((await harness.say('incidents', 'update', id, 'resolved', 'Mended.')).code).toBe(0)
  const listed = await harness.say('incidents', 'list')
  expect(listed.out).toMatch(/Slow answers +major +resolved/)
  expect(harness.incidents.incidents[0]!.updates.map(({ text }) => text)).toEqual(['Mended.', 'We look into it.'])
})

test.each([
  [['open', 'Slow'], 'text is missing'],
  [['open', 'Slow', 'x', '--impact', 'awful'], '--impact must be one of'],
  [['update', 'inc_none', 'resolved', 'x'], 'there is no such incident'],
  [['update', 'inc_none', 'fixed', 'x'], 'STATE must be one of'],
  [['open', ' ', 'x'], 'TITLE must be 1 to 120 characters'],
])('invalid arguments are explained: %j', async (args, sentence) => {
  const { code, err } = await harness.say('incidents', ...args)
  expect(code).not.toBe(0)
  expect(err).toContain(sentence)
})
