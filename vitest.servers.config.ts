import { defineConfig } from 'vitest/config'

/** Real model servers: `npm run test:servers`. The setup installs them once into .cache/servers. */
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
