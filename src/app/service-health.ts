import { readReport } from '../domain/node-report.ts'
import { type KnownNode, ServiceHealth } from '../domain/service-health.ts'
import type { NodeStore } from '../storage/nodes.ts'

/**
 * What the nodes that share the database report. `own` is this process, if it is one of them: it knows
 * itself better than the database does. `nowMs` reads the clock after the database answered.
 */
export async function readServiceHealth(
  store: NodeStore,
  nowMs: () => number,
  own?: () => KnownNode,
): Promise<ServiceHealth> {
  const stored = await store.listNodes()
  const atMs = nowMs()
  const self = own?.()
  const others = stored
    .filter(({ id }) => id !== self?.id)
    .map(({ id, startedAgoMs, seenAgoMs, report }) => {
      return { id, startedAtMs: atMs - startedAgoMs, seenAtMs: atMs - seenAgoMs, report: readReport(report) }
    })
  return new ServiceHealth(self === undefined ? others : [self, ...others], atMs)
}
