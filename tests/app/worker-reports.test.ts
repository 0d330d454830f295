import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { linkToParent, type WorkerEnd, WorkerReports } from '../../src/app/worker-reports.ts'
import type { ChannelEnd } from '../../src/runtime/process-reports.ts'

class End extends EventEmitter implements ChannelEnd, WorkerEnd {
  connected = true
  other: End | undefined

  send(message: object): boolean {
    const text = JSON.stringify(message)
    setImmediate(() => this.other?.emit('message', JSON.parse(text)))
    return true
  }
}

function startWorker(reports: WorkerReports): { readonly seen: End; readonly own: End } {
  const [seen, own] = [new End(), new End()]
  seen.other = own
  own.other = seen
  reports.add(seen)
  return { seen, own }
}

test('a worker gets the figures of all workers that answer, its own included', async () => {
  const reports = new WorkerReports()
  const links = [1, 2].map((number) => {
    const link = linkToParent(startWorker(reports).own)
    link.answer('traffic', () => ({ number }))
    return link
  })
  // One that hangs.
  startWorker(reports)
  expect(await links[0]!.gather('traffic')).toEqual([{ number: 1 }, { number: 2 }])
})

test('the final figures of a worker arrive with its end, and a worker that was killed gives none', async () => {
  const reports = new WorkerReports()
  const ended: unknown[] = []
  reports.onEnded = (_, figures) => ended.push(figures)
  const [leaving, killed] = [startWorker(reports), startWorker(reports)]
  await linkToParent(leaving.own).leave([{ name: 'requests' }])
  leaving.seen.emit('exit')
  killed.seen.emit('exit')
  expect(ended).toEqual([[{ name: 'requests' }], undefined])
  expect((await reports.gather('metrics')).size).toBe(0)
})

test('simultaneous questions share one round of answers', async () => {
  const reports = new WorkerReports()
  let asked = 0
  linkToParent(startWorker(reports).own).answer('metrics', () => (asked += 1))
  await Promise.all([reports.gather('metrics'), reports.gather('metrics')])
  expect(asked).toBe(1)
})
