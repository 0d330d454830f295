import { expect, test } from 'vitest'
import { errorMessage } from '../../../src/domain/error-message.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { linksFor } from '../../../src/domain/links.ts'
import { UnadmittedWork } from '../../../src/gateway/auth/unadmitted-work.ts'
import { ManualClock } from '../manual-clock.ts'

test('the message of the limit names its size and its scope', () => {
  const maxBodyBytes = 1024
  const work = new UnadmittedWork(maxBodyBytes, new ManualClock()).begin('acc_1')
  let refused: unknown
  try {
    work.spend(97 * 1024 * 1024)
  } catch (error) {
    refused = error
  }
  if (!(refused instanceof ServiceError)) throw new Error('the limit was not applied')
  expect(errorMessage(refused, linksFor('https://app.example.com'))).toMatch(
    /^Rate limit reached: 96 MiB of rejected requests per minute for one account\. Please try again in \d+s\.$/,
  )
})
