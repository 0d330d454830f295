import { defineConfig } from 'vitest/config'
import { RunSummary } from './tests/run-summary.ts'
import { SlowFirst } from './tests/slow-first.ts'
import { shared } from './vitest.config.ts'

/** The pages in Chromium: `npm run test:browser`. */
export default defineConfig({
  test: {
    ...shared,
    include: ['tests/browser/**/*.test.ts'],
    globalSetup: ['tests/fast-machine.ts'],
    reporters: ['default', new RunSummary()],
    sequence: { sequencer: SlowFirst },
    // The files of a worker share a browser.
    isolate: false,
    // On two processors, two workers took half as long again, and four took no less.
    maxWorkers: 3,
  },
})
