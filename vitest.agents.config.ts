import { defineConfig } from 'vitest/config'

/** Coding agents and agent libraries that are too large for `npm test`: the real programs, downloaded once into .cache/agents. */
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
