import { expect, test } from 'vitest'
import { BackendWatch } from '../../../src/accounts/backends/backend-watch.ts'
import { holdsOf, type BackendControl, type Hold } from '../../../src/domain/backend-controls.ts'
import { ManualClock, settled } from '../../gateway/manual-clock.ts'

const control = (backendId: string, kind: BackendControl['kind'], atMs: number): BackendControl => ({
  backendId,
  kind,
  atMs,
  by: 'cli',
  reason: kind === 'released' ? null : 'asked',
})

function watching(first: readonly BackendControl[] = []) {
  const clock = new ManualClock()
  const seen = { held: new Map<string, Hold>() as ReadonlyMap<string, Hold>, reset: [] as string[], failed: 0 }
  let read: () => Promise<readonly BackendControl[]> = () => Promise.resolve(first)
  const watch = new BackendWatch({
    store: { listBackendControls: () => read() },
    keeper: {
      hold: (holds) => void (seen.held = holds),
      reset: (id) => void seen.reset.push(id),
    },
    clock,
    onFailed: () => void (seen.failed += 1),
  })
  const script = (next: typeof read): void => void (read = next)
  return { clock, seen, watch, script }
}

test('at the start, earlier holds apply and earlier releases are ignored', async () => {
  const { seen, watch } = watching([control('a', 'drained', 1), control('b', 'released', 2)])
  await watch.start()
  expect([...seen.held]).toEqual([['a', { kind: 'drained', sinceMs: 1 }]])
  expect(seen.reset).toEqual([])
})

test('each later release resets its backend once', async () => {
  const { seen, watch, script } = watching([control('b', 'released', 2)])
  await watch.start()
  script(() => Promise.resolve([control('b', 'released', 3), control('c', 'released', 3)]))
  watch.refresh()
  watch.refresh()
  await settled()
  watch.refresh()
  await settled()
  expect(seen.reset).toEqual(['b', 'c'])
})

test('while the store fails, the last holds apply and the read is retried', async () => {
  const { clock, seen, watch, script } = watching([control('a', 'drained', 1)])
  await watch.start()
  script(() => Promise.reject(new Error('gone')))
  watch.refresh()
  await settled()
  expect([...seen.held.keys()]).toEqual(['a'])
  script(() => Promise.resolve([]))
  await clock.advance(250)
  expect([seen.held.size, seen.failed]).toEqual([0, 1])
})

test('a change during a read causes another read, and changes after closing have no effect', async () => {
  const { seen, watch, script } = watching()
  await watch.start()
  const first = Promise.withResolvers<readonly BackendControl[]>()
  script(() => first.promise)
  watch.refresh()
  script(() => Promise.resolve([control('a', 'quarantined', 5)]))
  watch.refresh()
  first.resolve([])
  await settled()
  expect([...seen.held]).toEqual([['a', { kind: 'quarantined', sinceMs: 5 }]])
  watch.close()
  script(() => Promise.resolve([]))
  watch.refresh()
  await settled()
  expect(seen.held.size).toBe(1)
})

test('the watch does not start if the first read fails', async () => {
  const { watch, script } = watching()
  script(() => Promise.reject(new Error('gone')))
  await expect(watch.start()).rejects.toThrow('gone')
})

test('a backend that is both drained and quarantined is reported as drained', () => {
  const both = [control('a', 'drained', 1), control('a', 'quarantined', 2)]
  expect(holdsOf(both).get('a')).toEqual({ kind: 'drained', sinceMs: 1 })
  expect(holdsOf(both.toReversed()).get('a')).toEqual({ kind: 'drained', sinceMs: 1 })
})
