import { defineConfig } from 'vitest/config'
import { RunSummary } from './tests/run-summary.ts'
import { SlowFirst } from './tests/slow-first.ts'
import { shared } from './vitest.config.ts'

/**
 * Tests that count how many answers a service gives before it is killed, or measure its delays and its memory. They run
 * when nothing else uses the processors.
 */
const timed = ['tests/processes/{crash,fusion-load,restart}.test.ts']

/**
 * Several processes of the service on the same data, the service and a program around it, or its process under load:
 * `npm run test:processes`.
 */
export default defineConfig({
  test: {
    globalSetup: ['tests/fast-machine.ts'],
    reporters: ['default', new RunSummary()],
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        test: {
          ...shared,
          name: 'processes',
          include: ['tests/processes/**/*.test.ts'],
          exclude: timed,
          isolate: false,
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'timed',
          include: timed,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
