import { defineConfig } from 'vitest/config'

/** The big counts: `npm run test:long`. */
export default defineConfig({
  test: {
    include: ['tests/long/**/*.test.ts'],
    testTimeout: 1_800_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
