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
const kinds = ['stream', 'whole', 'due', 'failed', 'disconnected'] as const

async function runLane(lane: number): Promise<never> {
  for (let round = lane; ; round++) {
    const kind = kinds[round % kinds.length]!
    const id = mintId()
    const facts = { accountId: `acc_${lane % 3}`, keyId: 'key_1', profile: kind, format: 'openai-chat', units: 1 }
    const admission = await ledger.admit({ id, ...facts, stream: kind === 'stream' }, plan)
    const outcome = { charged: kind === 'failed' ? 0 : 1, attempts: [], totalMs: 1 }
    if (kind === 'due') {
      await sleep(round % 3)
      admission.settle(outcome, 'due')
    }
    await admission.durable()
    if (kind === 'stream' || kind === 'whole' || kind === 'due') {
      admission.deliver()
      send(id)
    }
    if (kind === 'stream') await sleep(round % 7)
    if (kind !== 'due') admission.settle(outcome, kind === 'failed' || kind === 'disconnected' ? 'none' : 'done')
  }
}

send('started')
await Promise.all(Array.from({ length: lanes }, (_, lane) => runLane(lane)))
