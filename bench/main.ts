// `npm run bench`: what svc-router costs relative to a bare relay and to another gateway, measured in turns on the same
// machine.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bench } from './bench.ts'
import { prepareMachine } from './machine.ts'
import { readOptions, usage } from './options.ts'
import type { Options, ScenarioName } from './options.ts'
import { Processes } from './processes.ts'
import { writeReport } from './report.ts'
import type { Row } from './rows.ts'
import { measureAdmissions } from './scenarios/admissions.ts'
import { measureAgainst } from './scenarios/against.ts'
import { measureAgents } from './scenarios/agents.ts'
import { measureChoice } from './scenarios/choice.ts'
import { measureBurst, measurePaced, measureTranslate, measureWhole } from './scenarios/cpu.ts'
import { measureIdle } from './scenarios/idle.ts'
import { measureLatency } from './scenarios/latency.ts'
import { measureSoak, measureStreams } from './scenarios/memory.ts'
import { measureObservability } from './scenarios/observability.ts'
import { measureWorkers } from './scenarios/workers.ts'

/** The time limit of the whole run. */
const longestRunMs = 30 * 60_000

const scenarios: Readonly<Record<ScenarioName, (bench: Bench) => Promise<Row[]>>> = {
  'whole-1k': (bench) => measureWhole(bench, 'whole-1k', 1024),
  'whole-8k': (bench) => measureWhole(bench, 'whole-8k', 8192),
  'in-flight-32': (bench) => measureWhole(bench, 'in-flight-32', 1024, 32),
  burst: measureBurst,
  paced: measurePaced,
  translate: measureTranslate,
  agents: measureAgents,
  observability: measureObservability,
  workers: measureWorkers,
  admissions: measureAdmissions,
  choice: measureChoice,
  latency: measureLatency,
  'streams-1000': measureStreams,
  soak: measureSoak,
  'idle-10000': measureIdle,
}

/** Runs the selected scenarios. Returns the exit code: 1 if something that is available could not be measured. */
async function main(options: Options): Promise<number> {
  const startMs = performance.now()
  const machine = prepareMachine()
  const cache = join(import.meta.dirname, '..', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'bench-'))
  const processes = new Processes(machine, folder)
  const abandon = (code: number): void => {
    processes.killAll()
    rmSync(folder, { recursive: true, force: true })
    process.exit(code)
  }
  process.once('SIGINT', () => abandon(130)).once('SIGTERM', () => abandon(143))
  const watchdog = setTimeout(() => {
    console.error('The run took too long and was ended.')
    abandon(1)
  }, longestRunMs)
  try {
    const bench = await Bench.open(options, processes, folder, machine.maxOpenFiles)
    const rows: Row[] = []
    if (options.against.length > 0) rows.push(...(await measureAgainst(bench)))
    else {
      for (const name of options.scenarios) {
        console.error(`${name} …`)
        rows.push(...(await runScenario(bench, name)))
      }
    }
    const seconds = (performance.now() - startMs) / 1000
    console.log(writeReport(rows, bench, machine, seconds))
    if (options.jsonFile !== undefined) {
      const { troubles } = bench
      const all = { machine, options, seconds, rows, absent: Object.fromEntries(bench.absent), troubles }
      writeFileSync(options.jsonFile, `${JSON.stringify(all, undefined, 2)}\n`)
    }
    return bench.troubles.length === 0 ? 0 : 1
  } finally {
    clearTimeout(watchdog)
    await processes.stopAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runScenario(bench: Bench, name: ScenarioName): Promise<Row[]> {
  try {
    return await scenarios[name](bench)
  } catch (error) {
    bench.note(name, 'all', error)
    return []
  }
}

let options: Options | undefined
try {
  options = readOptions(process.argv.slice(2))
} catch (error) {
  console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
  process.exitCode = 2
}
if (options !== undefined) process.exitCode = await main(options)
