import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Small files with a long run time. Vitest starts large files first, so without this list these would start last, and
 * one worker would still be busy when the others are done.
 */
const slow = [
  'web/every-account-page',
  'web/every-operator-page',
  'web/every-page',
  'web/playground-browser',
  'web/error-journeys',
  'web/playground-markdown',
  'web/browser',
  'web/account-journeys',
  'http/websocket/responses-socket',
  'contract/truncations',
  'simulation/mixed-turns',
  'clients/truncated-streams',
  'clients/fusion',
  'clients/python',
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
  'spec/fusion-tool',
  'faults/streams',
  'spec/fusion',
  'faults/drain',
  'faults/relay',
  'faults/breakers',
  'faults/pause',
  'faults/hostile-senders',
  'faults/hostile-sockets',
  'faults/unadmitted',
  'faults/sockets',
  'faults/failover-benchmark',
  'spec/managed-access',
  'faults/frozen-storage',
  'faults/fusion-load',
  'faults/event-loop',
  'faults/fusion-cancel',
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
