import { expect, test } from 'vitest'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { DescriptorWatch } from '../../../src/providers/http/descriptor-watch.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

function watching(limit: number, probe: () => Promise<void> = () => Promise.resolve()) {
  const clock = new ManualClock()
  const events: ServiceEvent[] = []
  const log = (event: ServiceEvent): void => void events.push(event)
  return { clock, events, watch: new DescriptorWatch({ clock, log, wanted: 1_256, limit, probe }) }
}

test('a limit that is too low for the configured connections is reported at startup, and a sufficient limit is not', () => {
  const low = watching(1_024)
  low.watch.start()
  expect(low.events).toEqual([{ event: 'descriptor_limit_low', limit: 1_024, wanted: 1_256 }])
  const enough = watching(1_256)
  enough.watch.start()
  expect(enough.events).toEqual([])
})

test('running out of descriptors is reported once a minute from any source, until the watch is disposed', async () => {
  let isShort = false
  const { clock, events, watch } = watching(1e6, () =>
    isShort ? Promise.reject(Object.assign(new Error('open'), { code: 'EMFILE' })) : Promise.resolve(),
  )
  watch.start()
  await clock.advance(30_000)
  expect(events).toEqual([])
  isShort = true
  await clock.advance(5_000)
  watch.report('EMFILE')
  await clock.advance(50_000)
  expect(events).toEqual([{ event: 'out_of_descriptors', code: 'EMFILE' }])
  await clock.advance(15_000)
  expect(events).toHaveLength(2)
  watch[Symbol.dispose]()
  expect(clock.waiting).toBe(0)
})
