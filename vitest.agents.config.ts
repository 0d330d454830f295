import { defineConfig } from 'vitest/config'

/** The agents that are too large for `npm test`: their real programmes, downloaded once into .cache/agents. */
export default defineConfig({
  test: {
    include: ['tests/agents/**/*.test.ts'],
    testTimeout: 180_000,
    hookTimeout: 900_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
