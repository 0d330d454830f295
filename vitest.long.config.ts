import { defineConfig } from 'vitest/config'

/** The big counts, and every case of the tests that take a sample in `npm test`: `npm run test:long`. */
export default defineConfig({
  test: {
    include: [
      'tests/long/**/*.test.ts',
      'tests/clients/**/*.test.ts',
      'tests/simulation/**/*.test.ts',
      'tests/spec/fusion.test.ts',
      'tests/contract/{format,recordings,truncations}.test.ts',
      'tests/billing/stripe-histories.test.ts',
      'tests/domain/audit-chain.test.ts',
      'tests/browser/every-{account-,operator-,}page.test.ts',
      'tests/faults/{concurrency,event-loop,fusion-cancel,hostile-neighbors,matrix,streams}.test.ts',
      'tests/processes/{alert-drills,backup,nodes,published}.test.ts',
    ],
    env: { SVC_ROUTER_TESTS: 'long' },
    globalSetup: ['tests/fast-machine.ts'],
    testTimeout: 1_800_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
