import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../../src/runtime/clock.ts'
import { idMinter } from '../../../src/runtime/ids.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { openSqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'

/*
 * A process to be killed: it passes requests through the ledger as fast as it can, and appends the ID of each delivered
 * answer to a file, instead of sending its first byte. Arguments: data folder, that file.
 */
const [folder, log] = process.argv.slice(2)
const lanes = 20
const plan = { id: 'test', name: 'Test', requestsPerMinute: 1e6, requestsPerMonth: 1e6, premium: false }
const clock = systemClock()
const mintId = idMinter('req_', () => clock.nowMs(), systemRandom())
const ledger = await openSqliteLedger(folder!, clock)
const file = openSync(log!, 'a')
const send = (id: string) => writeSync(file, `${id}\n`)
const courses = ['stream', 'whole', 'due', 'failed', 'gone'] as const

async function runLane(lane: number): Promise<never> {
  for (let round = lane; ; round++) {
    const course = courses[round % courses.length]!
    const id = mintId()
    const facts = { accountId: `acc_${lane % 3}`, keyId: 'key_1', profile: course, format: 'openai-chat', units: 1 }
    const admission = await ledger.admit({ id, ...facts, stream: course === 'stream' }, plan)
    const outcome = { charged: course === 'failed' ? 0 : 1, attempts: [], totalMs: 1 }
    if (course === 'due') {
      await sleep(round % 3)
      admission.settle(outcome, 'due')
    }
    await admission.durable()
    if (course === 'stream' || course === 'whole' || course === 'due') {
      admission.deliver()
      send(id)
    }
    if (course === 'stream') await sleep(round % 7)
    if (course !== 'due') admission.settle(outcome, course === 'failed' || course === 'gone' ? 'none' : 'done')
  }
}

send('started')
await Promise.all(Array.from({ length: lanes }, (_, lane) => runLane(lane)))
