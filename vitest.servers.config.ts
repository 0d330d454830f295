import { defineConfig } from 'vitest/config'

/** Real servers of models: `npm run test:servers`. They are installed once into .cache/servers. */
export default defineConfig({
  test: {
    include: ['tests/servers/**/*.test.ts'],
    globalSetup: ['tests/servers/setup.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
