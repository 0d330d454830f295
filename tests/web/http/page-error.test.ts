import { expect, test } from 'vitest'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { StoreUnavailable } from '../../../src/runtime/store-unavailable.ts'
import { describeError } from '../../../src/web/http/page-error.ts'

function describe(thrown: unknown): { readonly status: number; readonly events: readonly string[] } {
  const events: string[] = []
  const log = ({ event }: ServiceEvent): void => void events.push(event)
  return { status: describeError({ deps: { log }, requestId: 'req_1' }, thrown).status, events }
}

test('a database that cannot be used makes a page temporarily unavailable, and anything unexpected is a bug', () => {
  expect(describe(new StoreUnavailable('a full disk'))).toEqual({ status: 503, events: ['store_failing'] })
  expect(describe(new Error('x'))).toEqual({ status: 500, events: ['internal_error'] })
})
