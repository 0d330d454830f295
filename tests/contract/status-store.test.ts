import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Incident, IncidentUpdate } from '../../src/domain/incidents.ts'
import type { UptimeCount } from '../../src/domain/uptime.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { enginesFor } from './engines.ts'

const count = (day: string, answered: number, failed: number, name = 'alpha'): UptimeCount => ({
  day,
  kind: 'backend',
  name,
  answered,
  failed,
})
const update = (id: string, state: IncidentUpdate['state'], atMs: number): IncidentUpdate => ({
  id,
  state,
  text: `text ${id}`,
  atMs,
})
const incident = (id: string, createdAtMs: number): Incident => ({
  id,
  title: `title ${id}`,
  impact: 'major',
  createdAtMs,
  updates: [update(`${id}-1`, 'investigating', createdAtMs)],
})

describe.each(enginesFor('status'))('status on %s', (_, engine) => {
  let store: Store
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    store = createStore(await (await engine.fresh())())
    return () => store.close()
  })

  test('counts of one day are summed across nodes, and old days are deleted', async () => {
    await store.addUptime([count('2026-08-01', 1, 1), count('2026-11-20', 5, 0)], '2026-08-01')
    await Promise.all([1, 2, 3].map(() => store.addUptime([count('2026-11-21', 2, 1)], '2026-08-02')))
    await store.addUptime([count('2026-11-21', 1, 0), count('2026-11-21', 0, 4, 'beta')], '2026-08-02')
    const rows = (await store.listUptime('2026-01-01')).toSorted((a, b) =>
      `${a.day}${a.name}`.localeCompare(`${b.day}${b.name}`),
    )
    expect(rows).toEqual([count('2026-11-20', 5, 0), count('2026-11-21', 7, 3), count('2026-11-21', 0, 4, 'beta')])
    expect((await store.listUptime('2026-11-21')).length).toBe(2)
  })

  test('incidents and their updates are listed newest first, without old resolved incidents', async () => {
    for (const [id, at] of [
      ['inc_1', 100],
      ['inc_2', 200],
      ['inc_3', 300],
    ] as const)
      await store.addIncident(incident(id, at), someRecord())
    expect(await store.addIncidentUpdate('inc_1', update('u1', 'resolved', 400), someRecord())).toBe(true)
    expect(await store.addIncidentUpdate('inc_3', update('u3', 'monitoring', 500), someRecord())).toBe(true)
    expect(await store.addIncidentUpdate('inc_9', update('u9', 'monitoring', 500), someRecord())).toBe(false)
    // Each accepted change is in the audit log, in the same transaction. Rejected ones are not.
    expect((await store.auditHead()).sequence).toBe(5)
    const listed = await store.listIncidents(250, 10)
    expect(listed.map(({ id, updates }) => [id, ...updates.map((each) => each.state)])).toEqual([
      ['inc_3', 'monitoring', 'investigating'],
      ['inc_2', 'investigating'],
    ])
    expect(listed[1]).toEqual(incident('inc_2', 200))
    expect((await store.listIncidents(0, 2)).map(({ id }) => id)).toEqual(['inc_3', 'inc_2'])
  })

  test('the latest update comes first, even within a millisecond or after a clock moved back', async () => {
    await store.addIncident(incident('inc_1', 100), someRecord())
    await store.addIncidentUpdate('inc_1', update('u9', 'identified', 100), someRecord())
    await store.addIncidentUpdate('inc_1', update('u5', 'monitoring', 100), someRecord())
    await store.addIncidentUpdate('inc_1', update('u1', 'resolved', 40), someRecord())
    const [listed] = await store.listIncidents(0, 1)
    expect(listed!.updates.map(({ state }) => state)).toEqual(['resolved', 'monitoring', 'identified', 'investigating'])
  })
})
