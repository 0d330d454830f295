import { readReport } from '../domain/node-report.ts'
import { type KnownNode, ServiceHealth } from '../domain/service-health.ts'
import type { NodeStore } from '../storage/nodes.ts'

/** What the nodes that share the database report. */
export async function readServiceHealth(store: NodeStore, nowMs: () => number): Promise<ServiceHealth> {
  return new ServiceHealth(await readNodes(store, nowMs), nowMs())
}

/** Every node that sent a heartbeat within the last minute. `nowMs` reads the clock after the database answered. */
export async function readNodes(store: NodeStore, nowMs: () => number): Promise<readonly KnownNode[]> {
  const stored = await store.listNodes()
  const atMs = nowMs()
  return stored.map(({ id, startedAgoMs, seenAgoMs, report }) => {
    return { id, startedAtMs: atMs - startedAgoMs, seenAtMs: atMs - seenAgoMs, report: readReport(report) }
  })
}
