import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { createStore } from '../../src/storage/store.ts'
import { ServiceProcess } from '../faults/service-process.ts'

const opened = new AsyncDisposableStack()
afterEach(() => opened.disposeAsync())

/** A receiver of webhooks that answers only if it is told to. */
async function openReceiver() {
  const bodies: string[] = []
  const connected: Socket[] = []
  let answers = false
  const server = createServer((socket) => {
    connected.push(socket)
    socket.on('error', () => {})
    if (!answers) return
    socket.on('data', (bytes) => {
      bodies.push(bytes.toString().split('\r\n\r\n')[1] ?? '')
      socket.end('HTTP/1.1 204 No Content\r\n\r\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.defer(() => {
    for (const socket of connected) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts`,
    bodies,
    connected,
    answer: () => void (answers = true),
  }
}

test(
  'an alert is sent although one process dies after it noticed it, and another one while it sends it',
  { timeout: 120_000 },
  async () => {
    const receiver = await openReceiver()
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-alerts-'))
    opened.defer(() => rmSync(folder, { recursive: true, force: true }))
    const provider: SimulatedProvider = await startSimulatedProvider({ name: 'alpha' })
    opened.defer(() => provider.close())
    const settings = {
      backends: { alpha: { provider: 'alpha', model: 'simulated' } },
      budget_alerts: { webhook_url: receiver.url },
    }
    const service = new ServiceProcess(folder, [provider], settings, {
      SVC_ROUTER_WEBHOOK_SECRET: 'made-up-secret-of-the-webhook',
    })
    opened.defer(() => service.destroy())
    await service.start()

    // This process notices the alert, stores it as `BudgetAlerts` does, and does no more: as if it died then.
    const store = createStore(await openSqlite(service.dataDir))
    const [account] = await store.listAccounts(1)
    const atMs = Date.now()
    const common = { eventId: 'bud_1-1-80', accountId: account!.id, channel: 'operator', target: '' } as const
    const alert = { budgetId: 'bud_1', windowMs: 1, thresholds: [80], accountId: account!.id, atMs }
    expect(await store.addBudgetAlert(alert, [{ ...common, id: 'adl_1', body: '{"id":"bud_1-1-80"}', atMs }])).toBe(
      true,
    )
    await store.close()

    // The service has claimed it, and is killed before the receiver reads anything.
    await expect.poll(() => receiver.connected.length, { timeout: 20_000 }).toBe(1)
    await service.stop('SIGKILL')
    using database = new DatabaseSync(join(service.dataDir, 'svc-router.db'), { timeout: 5_000 })
    const row = (): unknown =>
      database.prepare('select state, attempts, due_at_ms > ? as isLeased from alert_deliveries').get(Date.now())
    expect(row()).toEqual({ state: 'waiting', attempts: 1, isLeased: 1 })
    expect(receiver.bodies).toEqual([])

    // Instead of waiting for the end of the lease.
    database.exec('update alert_deliveries set due_at_ms = due_at_ms - 120000')
    receiver.answer()
    await service.start()
    await expect.poll(() => receiver.bodies, { timeout: 20_000 }).toEqual(['{"id":"bud_1-1-80"}'])
    await expect.poll(row).toBeUndefined()
    await service.stop('SIGTERM')
  },
)
