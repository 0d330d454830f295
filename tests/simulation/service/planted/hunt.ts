import { registerHooks } from 'node:module'
import { plantedBugs } from './all-bugs.ts'
import { readPatched } from './planted-bug.ts'

/*
 * Plants one bug in the modules of this process, and runs schedules until one breaks an invariant:
 * node bin/run.mjs node tests/simulation/service/planted/hunt.ts BUG FIRST_SEED SCHEDULES
 * Prints the result as one line of JSON.
 */

const [name, first = '1', most = '1000'] = process.argv.slice(2)
const bug = plantedBugs.find((each) => each.name === name)
if (bug === undefined) throw new Error(`there is no planted bug "${name}"`)
const root = new URL('../../../../src/', import.meta.url).href
const files = new Set(bug.patches.map(({ file }) => file))
const planted = new Set<string>()

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const file = url.startsWith(root) ? url.slice(root.length) : ''
    if (!files.has(file)) return loaded
    planted.add(file)
    return { ...loaded, source: readPatched(bug, file) }
  },
})

const { runSchedule } = await import('../run-schedule.ts')
for (const file of files) if (!planted.has(file)) throw new Error(`${file} was loaded before its bug was planted`)

let found: { readonly id: string; readonly what: string } | undefined
let schedules = 0
const began = process.cpuUsage()
while (found === undefined && schedules < Number(most)) {
  try {
    const { violations } = await runSchedule(Number(first) + schedules)
    found = violations[0]
  } catch (error) {
    found = { id: 'exception', what: String(error) }
  }
  schedules += 1
}
const { user, system } = process.cpuUsage(began)
const cpuMs = Math.round((user + system) / 1_000)
console.log(JSON.stringify({ name, schedules, cpuMs, id: found?.id, what: found?.what.slice(0, 200) }))
