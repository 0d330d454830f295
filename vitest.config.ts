import { defineConfig } from 'vitest/config'
import { RunSummary } from './tests/run-summary.ts'
import { SlowFirst } from './tests/slow-first.ts'

/** Tests that measure time or memory in limits that other tests would exceed. They run after all others. */
const measured = ['tests/faults/{concurrency,fusion-cancel,matrix}.test.ts']
/** They measure the heap, or CPU time with the garbage collector's, so they share their process with no other file. */
const fresh = ['tests/faults/leaks.test.ts', 'tests/simulation/overhead.test.ts']
/** Measures the memory and the delays of a service under attack, so it runs alone. */
const alone = ['tests/faults/hostile-neighbors.test.ts']
const folders = ['agents', 'browser', 'install', 'long', 'processes', 'servers'].map((name) => `tests/${name}/**`)
const elsewhere = [...folders, 'tests/deploy/chart.test.ts']

/** What the projects of `npm test`, `npm run test:browser`, and `npm run test:processes` have in common. */
export const shared = {
  // Many times what any test takes: the machine may be busy.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 10_000 } },
  pool: 'forks',
  // A missed limit may be the machine's fault, so it is measured once more. Any other failure is final. The end of the
  // report names every test that needed a second run.
  retry: { count: 1, condition: /^expected [\d.]+ to be less than/ },
  // Node loads the sources itself, as in production: with its cache of compiled code, and without Vite's wrapper around
  // each use of an import. `vi.mock` does not work then, and nothing uses it.
  experimental: { viteModuleRunner: false, nodeLoader: false },
} as const

export default defineConfig({
  test: {
    globalSetup: ['tests/fast-machine.ts'],
    reporters: ['default', new RunSummary()],
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        test: {
          ...shared,
          name: 'main',
          include: ['tests/**/*.test.ts'],
          exclude: [...elsewhere, ...measured, ...fresh, ...alone],
          // The files of a worker share its modules: loading them again for each file takes a third of the time.
          isolate: false,
          // Most of these tests wait for sockets or timeouts. Five workers used 1.5 of two processors.
          maxWorkers: 6,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'measured',
          include: measured,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { ...shared, name: 'fresh', include: fresh, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      { test: { ...shared, name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
  },
})
