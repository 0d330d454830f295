import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files with a long run time. Vitest starts large files first, so without this list these would start last, and one
 * worker would still be busy when the others are done. The first one computes for a minute. Those after it mostly wait and
 * have limits in milliseconds, so they run beside it, before the browsers start.
 */
const slow = [
  'simulation/service',
  'faults/streams',
  'faults/drain',
  'spec/fusion-tool',
  'faults/breakers',
  'spec/fusion',
  'faults/sockets',
  'faults/relay',
  'faults/unadmitted',
  'faults/hostile-sockets',
  'spec/managed-access',
  'faults/hostile-retries',
  'faults/failover-benchmark',
  'faults/hostile-senders',
  'faults/unadmitted-stored',
  'faults/pause',
  'faults/load-shedding',
  'faults/full-service',
  'web/every-operator-page',
  'web/every-page',
  'web/every-account-page',
  'web/playground-browser',
  'web/error-journeys',
  'web/browser',
  'web/billing-journeys',
  'web/keyboard-journeys',
  'web/operator-browser',
  'web/playground-markdown',
  'web/public-browser',
  'web/connector-browser',
  'web/account-journeys',
  'simulation/replay',
  'clients/fusion',
  'faults/backpressure',
  'faults/event-loop',
  'clients/python',
  'simulation/routing',
  'simulation/caches/hit-rates',
  'http/websocket/responses-socket',
  'simulation/sessions',
  'linear',
  'domain/linear-patterns',
  'contract/truncations',
  'simulation/mixed-turns',
  'clients/truncated-streams',
  'cli/commands/doctor',
  'cli/commands/eval',
  'eval/power',
  'billing/stripe-histories',
  'contract/storage',
  'contract/ledger',
  'contract/operator-store',
  'storage/backup/postgres',
  'simulation/random-fusions',
  'eval/docs',
  'clients/kept-alive',
  'simulation/headroom',
  'simulation/recovery',
  'simulation/fence',
  'spec/errors',
  'spec/key-limits',
  'spec/failover',
  'eval/evaluation',
  'spec/fusion-skipped',
  'spec/fusion-refused',
  'contract/format',
  'cli/boot',
  'storage/ledger/ledger-sqlite',
  'spec/conversations',
  'cli/commands/run-agent',
  'faults/hostile-neighbors',
  'faults/matrix',
  'faults/fusion-cancel',
  'faults/frozen-storage',
  'faults/concurrency',
  'faults/fusion-load',
  'faults/leaks',
  'processes/backup',
  'processes/sqlite-workers',
  'processes/nodes',
  'processes/workers',
  'processes/alert-drills',
  'processes/database-outage',
  'processes/rolling-restarts',
  'processes/stored-responses',
  'processes/published',
  'processes/npm-start',
  'processes/signed-audit',
].map((name) => `/tests/${name}.test.ts`)

/** Starts the slow files first, in the order of the list, then the others in the order of Vitest. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = (file: TestSpecification): number => {
      const index = slow.findIndex((name) => file.moduleId.endsWith(name))
      return index === -1 ? slow.length : index
    }
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}
