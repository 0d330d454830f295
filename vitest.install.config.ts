import { defineConfig } from 'vitest/config'

/** Installs what is published, on an empty machine and into an image: `npm run test:install`. */
export default defineConfig({
  test: {
    include: ['tests/install/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
})
