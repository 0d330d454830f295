import { afterAll, beforeAll, expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { allClientCells, sampledClientCells } from './matrix/client-cells.ts'
import { runClientCells } from './matrix/client-run.ts'
import { StrangeServers } from './matrix/strange-servers.ts'
import { allUpstreamCells, sampledUpstreamCells } from './matrix/upstream-cells.ts'
import { runUpstreamCells } from './matrix/upstream-run.ts'

/** Most of the time the cells wait for timeouts; a busy machine takes several times as long. */
const timeout = casesOf({ sample: 120_000, all: 1_800_000 })
/** Runs the cells whose coordinates begin like this, and no others. */
const only = process.env['SVC_ROUTER_CELLS']

let strange: StrangeServers
beforeAll(async () => {
  if (only !== undefined && ![...allUpstreamCells(), ...allClientCells()].some(isChosen))
    throw new Error(`There is no cell ${only}. Coordinates look like ${allUpstreamCells()[0]!.id}.`)
  strange = await StrangeServers.start()
})
afterAll(() => strange.close())

const isChosen = ({ id }: { readonly id: string }): boolean => `${id}/`.startsWith(`${only}/`)

function chosen<Cell extends { readonly id: string }>(sampled: () => Cell[], all: () => Cell[]): Cell[] {
  if (only !== undefined) return all().filter(isChosen)
  return casesOf({ sample: sampled, all })()
}

/** The failed cells, each with the command that runs it alone. */
function reportOf(problems: readonly string[]): string[] {
  return problems.map((problem) => {
    const id = /^[\w-]+(?:\/[\w-]+)+/.exec(problem)?.[0]
    return id === undefined ? problem : `${problem}\n  SVC_ROUTER_CELLS=${id} npm test -- tests/faults/matrix.test.ts`
  })
}

test('a client sees what the contract promises, whatever the backends do', { timeout }, async () => {
  const cells = chosen(sampledUpstreamCells, allUpstreamCells)
  console.log(`${cells.length} of ${allUpstreamCells().length} upstream cells`)
  expect(reportOf(await runUpstreamCells(cells, strange))).toEqual([])
})

test('an account pays what the contract promises, whatever its clients do', { timeout }, async () => {
  const cells = chosen(sampledClientCells, allClientCells)
  console.log(`${cells.length} of ${allClientCells().length} client cells`)
  expect(reportOf(await runClientCells(cells))).toEqual([])
})
