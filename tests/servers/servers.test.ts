import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { cases, type Cell } from './cases.ts'
import { cache } from './installing.ts'
import { servers } from './servers.ts'
import { World } from './world.ts'

const unavailable = inject('unavailable')
const rows: string[] = ['| server | case | convention | not streamed | streamed |', '| --- | --- | --- | --- | --- |']

/** How many answers are equal, differ for a documented reason, or differ, by server and convention. */
const counts = new Map<string, { equal: number; explained: number; different: number }>()

function count(server: string, { convention, difference }: Cell, isExplained: boolean): void {
  const key = `| ${server} | ${convention} |`
  const counted = counts.get(key) ?? { equal: 0, explained: 0, different: 0 }
  counted[difference === undefined ? 'equal' : isExplained ? 'explained' : 'different'] += 1
  counts.set(key, counted)
}

afterAll(() => {
  const summary = [
    '| server | convention | equal | explained | DIFFERENT |',
    '| --- | --- | --- | --- | --- |',
    ...[...counts].map(([key, { equal, explained, different }]) => `${key} ${equal} | ${explained} | ${different} |`),
  ]
  const report = `${rows.join('\n')}\n\n${summary.join('\n')}\n`
  writeFileSync(join(cache, 'report.md'), report)
  process.stdout.write(`\n${report}\n`)
})

test('at least one server is available', () => {
  expect(servers.some(({ name }) => !(name in unavailable))).toBe(true)
})

describe.each(servers)('$name', (server) => {
  const reason = unavailable[server.name]
  if (reason !== undefined) {
    rows.push(`| ${server.name} | not available: ${reason} | | | |`)
    test.skip(`is not available: ${reason}`)
    return
  }

  let world: World | undefined
  beforeAll(async () => {
    world = await World.start(server, inject('model'))
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  test.each(cases)('$name', async (given) => {
    const { name } = given
    const cells = await given.run(world!)
    const unexplained: string[] = []
    const write = (cell: Cell): string => {
      const explained = server.differences?.[`${name}, ${cell.convention}`] ?? server.differences?.[`${name}, *`]
      count(server.name, cell, explained !== undefined)
      if (cell.difference === undefined) return 'equal'
      if (explained !== undefined) return explained
      unexplained.push(`${cell.convention}, ${cell.streamed ? 'streamed' : 'not streamed'}: ${cell.difference}`)
      return 'DIFFERENT'
    }
    for (const convention of new Set(cells.map((cell) => cell.convention))) {
      const [whole, streamed] = cells.filter((cell) => cell.convention === convention).map(write)
      rows.push(`| ${server.name} | ${name} | ${convention} | ${whole} | ${streamed} |`)
    }
    expect(unexplained).toEqual([])
  })
})
