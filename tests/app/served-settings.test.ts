import { expect, test } from 'vitest'
import { readDeclared, ServedSettings, SettingsWatch } from '../../src/app/served-settings.ts'
import { withDeclared } from '../../src/config/config.ts'
import { noSettings, settingsOf, type StoredSetting } from '../../src/domain/declared.ts'
import type { ServiceEvent } from '../../src/domain/events.ts'
import { StoreUnavailable } from '../../src/runtime/store-unavailable.ts'
import { loadText } from '../config/config-load.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

const config = loadText('mode: local\nbackends:\n  own: {provider: ollama, model: m}\n')

function watched() {
  const world = { stored: [] as StoredSetting[], isDown: false, prepared: 0 }
  const events: ServiceEvent[] = []
  const served = new ServedSettings(config)
  const clock = new ManualClock()
  const store = {
    listSettings: () => (world.isDown ? Promise.reject(new StoreUnavailable('down')) : Promise.resolve(world.stored)),
  }
  const prepare = (): Promise<() => void> => Promise.resolve(() => void (world.prepared += 1))
  const watch = new SettingsWatch(
    { config, served, store, clock, log: (event) => void events.push(event), prepare },
    noSettings,
  )
  const refresh = async (): Promise<void> => {
    watch.refresh()
    await settle()
  }
  return { world, events, served, clock, watch, refresh, store }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const plan = (name: string, value: object): StoredSetting =>
  ({ kind: 'plans', name, value, managed: true }) as unknown as StoredSetting
const team = plan('team', { name: 'Team', requests_per_minute: 9, requests_per_month: 90 })

test('declared settings replace and complete those of the configuration, and removing them brings these back', async () => {
  const { world, served, refresh, store } = watched()
  world.stored = [team, plan('free', { name: 'Gratis', requests_per_minute: 1, requests_per_month: 1 })]
  await refresh()
  expect(served.plans.map(({ id, name }) => [id, name])).toEqual([
    ['free', 'Gratis'],
    ['pro', 'Pro'],
    ['max', 'Max'],
    ['team', 'Team'],
  ])
  expect(served.planById('team')).toMatchObject({ requestsPerMinute: 9 })
  expect(served.backends.map(({ id }) => id)).toEqual(['own'])
  expect(withDeclared(config, await readDeclared(store)).plans).toEqual(served.plans)
  world.stored = []
  await refresh()
  expect(served.plans).toEqual(config.plans)
  await refresh()
  expect(world.prepared).toBe(2)
})

test('settings that do not fit this node are logged once by their path, and the last ones stay in force', async () => {
  const { world, served, events, refresh } = watched()
  world.stored = [team]
  await refresh()
  const backend = { provider: 'gone', model: 'm' }
  world.stored = [team, { kind: 'backends', name: 'new', value: backend, managed: true }]
  await refresh()
  await refresh()
  expect(events).toEqual([{ event: 'settings_failing', reason: 'backends.new.provider' }])
  expect(served.planById('team')).toBeDefined()
  expect(served.isCurrent).toBe(false)
  world.stored = []
  await refresh()
  expect(served.isCurrent).toBe(true)
  expect(served.planById('team')).toBeUndefined()
  expect(() =>
    config.settings.serve(settingsOf([{ kind: 'backends', name: 'new', value: backend, managed: true }])),
  ).toThrow('declared settings at backends.new.provider')
})

test('while the store is down the last settings stay in force, and the next ones follow by themselves', async () => {
  const { world, served, events, clock, watch, refresh } = watched()
  world.isDown = true
  world.stored = [team]
  await refresh()
  expect(events).toEqual([{ event: 'store_failing', reason: 'StoreUnavailable' }])
  expect(served.planById('team')).toBeUndefined()
  world.isDown = false
  await clock.advance(250)
  await settle()
  expect(served.planById('team')).toBeDefined()
  watch.close()
})
