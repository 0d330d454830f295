import { parseArgs } from 'node:util'
import type { GatewayName } from './gateways.ts'

/** The scenarios in the order in which they run. */
const scenarioNames = [
  'whole-1k',
  'whole-8k',
  'in-flight-32',
  'burst',
  'paced',
  'translate',
  'observability',
  'workers',
  'admissions',
  'choice',
  'latency',
  'streams-1000',
  'soak',
  'idle-10000',
] as const
export type ScenarioName = (typeof scenarioNames)[number]

/** How much is measured. Durations are in milliseconds. */
export interface Options {
  readonly quick: boolean
  readonly rounds: number
  readonly scenarios: readonly ScenarioName[]
  readonly gateways: readonly GatewayName[]
  /** Whether non-streaming answers of `floor.ts` are measured, too. */
  readonly floor: boolean
  /** Where svc-router stores everything in the scenario `workers`. */
  readonly store: 'postgres' | 'sqlite'
  readonly jsonFile: string | undefined
  readonly warmUpMs: number
  readonly runMs: number
  readonly pacedEvents: number
  readonly latencyMs: number
  readonly admissionsMs: number
  readonly soakRequests: number
  /** For paced, admissions, latency, and idle-10000, whose rounds are long. */
  readonly longRounds: number
}

const maxRounds = 50
const maxLongRounds = 3
export const usage = `usage: npm run bench -- [--quick] [--rounds N] [--only name,name] [--json FILE] [--control] [--floor]
                           [--store postgres|sqlite]
  --quick     about a minute, fewer and shorter rounds: for a first look, not for a claim
  --rounds    rounds for each comparison (default 5, with --quick 2)
  --only      some of: ${scenarioNames.join(', ')}
  --json      also write every figure of every round to FILE
  --control   measure a second relay too: how far its ratio is from 1.00 is the noise of this machine
  --floor     measure whole answers of a gateway without all that could be left out, too
  --store     the store of the scenario workers (default postgres)`

/** Parses the command line. @throws Error with one sentence that explains the problem */
export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'string' },
      control: { type: 'boolean', default: false },
      floor: { type: 'boolean', default: false },
      store: { type: 'string', default: 'postgres' },
    },
  })
  const quick = values.quick
  const rounds = Number(values.rounds ?? (quick ? 2 : 5))
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > maxRounds) {
    throw new Error(`--rounds takes a whole number from 1 to ${maxRounds}.`)
  }
  const { store } = values
  if (store !== 'postgres' && store !== 'sqlite') throw new Error('--store takes postgres or sqlite.')
  return {
    quick,
    rounds,
    scenarios: readScenarios(values.only),
    gateways: ['relay', ...(values.control ? (['relay-again'] as const) : []), 'svc-router', 'portkey'],
    floor: values.floor,
    store,
    jsonFile: values.json,
    warmUpMs: quick ? 500 : 5000,
    runMs: quick ? 700 : 1500,
    pacedEvents: quick ? 50 : 200,
    latencyMs: quick ? 1000 : 2000,
    admissionsMs: quick ? 1000 : 4000,
    soakRequests: quick ? 20_000 : 300_000,
    longRounds: quick ? 1 : Math.min(rounds, maxLongRounds),
  }
}

function readScenarios(only: string | undefined): readonly ScenarioName[] {
  if (only === undefined) return scenarioNames
  const named = only.split(',').map((name) => name.trim())
  const unknown = named.find((name) => !scenarioNames.some((known) => known === name))
  if (unknown !== undefined)
    throw new Error(`There is no scenario ${unknown}: take some of ${scenarioNames.join(', ')}.`)
  return scenarioNames.filter((name) => named.includes(name))
}
