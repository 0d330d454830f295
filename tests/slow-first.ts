import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files with a long run time. Vitest starts large files first, so without this list these would start last, and one
 * worker would still be busy when the others are done. At the beginning, files that mostly wait alternate with files that
 * mostly compute, so that the processors are always busy.
 */
const slow = [
  'simulation/service',
  'web/every-operator-page',
  'web/every-page',
  'faults/streams',
  'web/every-account-page',
  'spec/fusion-tool',
  'web/playground-browser',
  'spec/fusion',
  'web/error-journeys',
  'faults/breakers',
  'web/browser',
  'faults/drain',
  'web/billing-journeys',
  'faults/sockets',
  'web/keyboard-journeys',
  'faults/relay',
  'web/operator-browser',
  'faults/unadmitted',
  'web/playground-markdown',
  'faults/hostile-sockets',
  'web/public-browser',
  'spec/managed-access',
  'web/connector-browser',
  'faults/hostile-retries',
  'web/account-journeys',
  'faults/matrix',
  'simulation/replay',
  'faults/concurrency',
  'clients/fusion',
  'faults/backpressure',
  'faults/event-loop',
  'clients/python',
  'faults/failover-benchmark',
  'simulation/routing',
  'faults/hostile-senders',
  'simulation/caches/hit-rates',
  'http/websocket/responses-socket',
  'simulation/sessions',
  'faults/unadmitted-stored',
  'linear',
  'domain/linear-patterns',
  'faults/pause',
  'faults/frozen-storage',
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
  'faults/fusion-cancel',
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
