import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Run by the tests of src/cli/process/workers.ts: starts one worker, which is this program again. `LOG` names a file with
 * one line per start; `HANGS` says which start hangs before it listens. With `VANISHES`, there is no program to start after
 * the first start.
 */
const { LOG: log = '', HANGS: hangs = '' } = process.env
if (process.env['SVC_ROUTER_WORKER'] === undefined) await startParent()
else await startWorker()

async function startParent(): Promise<void> {
  // A worker loads none of this, so that it starts fast.
  const { startWorkers } = await import('../../../src/cli/process/workers.ts')
  const { loadText } = await import('../../config/config-load.ts')
  const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
  const options = {
    env: process.env,
    onSpawned: ({ pid }: { readonly pid?: number | undefined }) => {
      say({ spawned: pid })
      if (process.env['VANISHES'] !== undefined) process.execPath = `${log}-missing`
    },
    onDied: ({ reason }: { readonly reason: string }) => say({ died: reason }),
    host: undefined,
    startLimitMs: Number(process.env['START_LIMIT_MS']),
  }
  await startWorkers(loadText('mode: local\n'), options).then(
    () => say({ started: true }),
    (error: Error) => {
      say({ failed: error.message })
      process.exit(1)
    },
  )
}

async function startWorker(): Promise<void> {
  appendFileSync(log, `${process.pid}\n`)
  const start = readFileSync(log, 'utf8').trim().split('\n').length
  if (String(start) !== hangs) process.send!('listening')
  await sleep(600_000)
}
