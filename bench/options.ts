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
  'agents',
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
  /** Commits of this program, or folders with copies of it, that are compared with it instead of other gateways. */
  readonly against: readonly string[]
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
const maxWarmUpS = 60
export const usage = `usage: npm run bench -- [--quick] [--rounds N] [--only name,name] [--json FILE] [--control] [--floor]
                           [--store postgres|sqlite] [--against COMMIT,…] [--warm-up SECONDS]
  --quick     about a minute, fewer and shorter rounds: for a first look, not for a claim
  --rounds    rounds for each comparison (default 5, with --quick 2)
  --only      some of: ${scenarioNames.join(', ')}
  --json      also write every figure of every round to FILE
  --control   measure a second relay too: how far its ratio is from 1.00 is the noise of this machine
  --floor     measure whole answers of a gateway without all that could be left out, too
  --store     the store of the scenario workers (default postgres)
  --against   compare the CPU of this program only with other commits of it, or with copies in other folders
  --warm-up   seconds of load before a gateway is measured (default 5, with --quick 0.5)`

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
      against: { type: 'string' },
      'warm-up': { type: 'string' },
      store: { type: 'string', default: 'postgres' },
    },
  })
  const quick = values.quick
  const rounds = readRounds(values.rounds ?? (quick ? 2 : 5))
  return {
    quick,
    rounds,
    scenarios: readScenarios(values.only),
    gateways: ['relay', ...(values.control ? (['relay-again'] as const) : []), 'svc-router', 'portkey'],
    floor: values.floor,
    store: readStore(values.store),
    against: values.against?.split(',') ?? [],
    jsonFile: values.json,
    warmUpMs: readWarmUpMs(values['warm-up'] ?? (quick ? 0.5 : 5)),
    runMs: quick ? 700 : 1500,
    pacedEvents: quick ? 50 : 200,
    latencyMs: quick ? 1000 : 2000,
    admissionsMs: quick ? 1000 : 4000,
    soakRequests: quick ? 20_000 : 300_000,
    longRounds: quick ? 1 : Math.min(rounds, maxLongRounds),
  }
}

function readRounds(value: string | number): number {
  const rounds = Number(value)
  if (Number.isInteger(rounds) && rounds >= 1 && rounds <= maxRounds) return rounds
  throw new Error(`--rounds takes a whole number from 1 to ${maxRounds}.`)
}

function readWarmUpMs(value: string | number): number {
  const seconds = Number(value)
  if (seconds > 0 && seconds <= maxWarmUpS) return seconds * 1000
  throw new Error(`--warm-up takes up to ${maxWarmUpS} seconds.`)
}

function readStore(value: string): Options['store'] {
  if (value === 'postgres' || value === 'sqlite') return value
  throw new Error('--store takes postgres or sqlite.')
}

function readScenarios(only: string | undefined): readonly ScenarioName[] {
  if (only === undefined) return scenarioNames
  const named = only.split(',').map((name) => name.trim())
  const unknown = named.find((name) => !scenarioNames.some((known) => known === name))
  if (unknown !== undefined)
    throw new Error(`There is no scenario ${unknown}: take some of ${scenarioNames.join(', ')}.`)
  return scenarioNames.filter((name) => named.includes(name))
}
