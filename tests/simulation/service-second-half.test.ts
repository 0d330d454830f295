import { expect, test } from 'vitest'
import { isLongRun } from '../long-run.ts'
import { findFailures } from './service/run-schedule.ts'
import { sampledInEachFile } from './service/sampled.ts'

/* The schedules of `npm test` that follow those of `service.test.ts`: another worker runs them at the same time. */

test.skipIf(isLongRun)(
  `no schedule of the next ${sampledInEachFile} breaks an invariant`,
  { timeout: 1_200_000 },
  async () => {
    expect((await findFailures(1 + sampledInEachFile, sampledInEachFile)).join('\n')).toBe('')
  },
)
