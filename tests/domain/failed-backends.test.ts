import { expect, test } from 'vitest'
import { failedBackends, type RequestFailures } from '../../src/domain/requests.ts'

const attempt = (backend: string, outcome: string): RequestFailures['attempts'][number] =>
  ({ backend, outcome, ms: 1 }) as never

test.each<[string, RequestFailures, readonly string[] | undefined]>([
  ['an answer blames nobody', { attempts: [attempt('a', 'answered')] }, undefined],
  [
    'a failure before the answer blames the backend that failed',
    { attempts: [attempt('a', 'timeout'), attempt('b', 'answered')] },
    ['a'],
  ],
  [
    'an answer that broke off blames the backend that had begun it',
    { attempts: [attempt('a', 'timeout'), attempt('b', 'answered')], errorCode: 'upstream_broken' },
    ['a', 'b'],
  ],
  [
    'a client that disconnects blames nobody',
    { attempts: [attempt('a', 'answered')], errorCode: 'client_closed' },
    undefined,
  ],
  [
    'an error of the service blames nobody',
    { attempts: [attempt('a', 'answered')], errorCode: 'internal_error' },
    undefined,
  ],
])('%s', (_name, outcome, failed) => {
  expect(failedBackends(outcome)).toEqual(failed)
})
