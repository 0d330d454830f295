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
  const say = (next: typeof read): void => void (read = next)
  return { clock, seen, watch, say }
}

test('what was held before stands from the beginning; what was released before is old', async () => {
  const { seen, watch } = watching([control('a', 'drained', 1), control('b', 'released', 2)])
  await watch.start()
  expect([...seen.held]).toEqual([['a', { kind: 'drained', sinceMs: 1 }]])
  expect(seen.reset).toEqual([])
})

test('each later release is followed once', async () => {
  const { seen, watch, say } = watching([control('b', 'released', 2)])
  await watch.start()
  say(() => Promise.resolve([control('b', 'released', 3), control('c', 'released', 3)]))
  watch.refresh()
  watch.refresh()
  await settled()
  watch.refresh()
  await settled()
  expect(seen.reset).toEqual(['b', 'c'])
})

test('while the store does not answer what was read stands, and it is asked until it does', async () => {
  const { clock, seen, watch, say } = watching([control('a', 'drained', 1)])
  await watch.start()
  say(() => Promise.reject(new Error('gone')))
  watch.refresh()
  await settled()
  expect([...seen.held.keys()]).toEqual(['a'])
  say(() => Promise.resolve([]))
  await clock.advance(250)
  expect([seen.held.size, seen.failed]).toEqual([0, 1])
})

test('a change during a read is read behind it, and nothing is followed once it is closed', async () => {
  const { seen, watch, say } = watching()
  await watch.start()
  const first = Promise.withResolvers<readonly BackendControl[]>()
  say(() => first.promise)
  watch.refresh()
  say(() => Promise.resolve([control('a', 'quarantined', 5)]))
  watch.refresh()
  first.resolve([])
  await settled()
  expect([...seen.held]).toEqual([['a', { kind: 'quarantined', sinceMs: 5 }]])
  watch.close()
  say(() => Promise.resolve([]))
  watch.refresh()
  await settled()
  expect(seen.held.size).toBe(1)
})

test('who cannot read what stands does not begin', async () => {
  const { watch, say } = watching()
  say(() => Promise.reject(new Error('gone')))
  await expect(watch.start()).rejects.toThrow('gone')
})

test('of a backend that is held twice the drain is told', () => {
  const both = [control('a', 'drained', 1), control('a', 'quarantined', 2)]
  expect(holdsOf(both).get('a')).toEqual({ kind: 'drained', sinceMs: 1 })
  expect(holdsOf(both.toReversed()).get('a')).toEqual({ kind: 'drained', sinceMs: 1 })
})
