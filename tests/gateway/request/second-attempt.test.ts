import { describe, expect, test } from 'vitest'
import { classifyRejection } from '../../../src/formats/answer-faults.ts'
import { limitNames, markFields, optionalFields } from '../../../src/formats/rejections/optional-fields.ts'
import type { RequestWriter } from '../../../src/gateway/request/backend-request.ts'
import { secondAttempt } from '../../../src/gateway/request/second-attempt.ts'
import { LearnedLimits } from '../../../src/gateway/routing/learned-limits.ts'
import { ManualClock } from '../manual-clock.ts'
import { someBackend } from '../routing/some-backend.ts'

const fields = [...Object.keys(optionalFields), ...Object.keys(limitNames)]
const endpoint = someBackend('one')

/** How servers reject an invalid value of a field, in the words in which others say that they do not know the field. */
const rejections: readonly (readonly [string, (field: string) => object])[] = [
  ['a validation of types', (field) => ({ error: { message: `${field}.own: Extra inputs are not permitted` } })],
  ['a code', (field) => ({ error: { message: 'no', code: 'unknown_parameter', param: `${field}.own` } })],
  ['a location', (field) => ({ detail: [{ type: 'extra_forbidden', loc: ['body', field, 'own'], msg: 'Extra' }] })],
  ['a sentence', (field) => ({ error: { message: `The value of parameter '${field}' is not supported.` } })],
]

/** Each field is one letter of the body. */
const writerOf = (own: readonly string[] = []): RequestWriter => ({
  endpointsOf: (backend) => [backend],
  write: (_, without = []) => 'x'.repeat(fields.filter((field) => !without.includes(field)).length),
  hasOwn: (name) => own.includes(name),
})

/** One account's request is rejected, and answered without the field. */
function rejectOnce(learned: LearnedLimits, body: object, own: readonly string[] = []): void {
  const error = classifyRejection({ status: 400 }, JSON.stringify(body))
  const writer = writerOf(own)
  const next = secondAttempt(error, {
    backend: endpoint,
    endpoint,
    sentLength: fields.length,
    writer,
    learned,
    earlier: undefined,
  })
  next?.learn()
}

describe.each(rejections)('what %s rejects', (_, rejection) => {
  test.each(fields)('%s is learned for the account, and for nobody else', (field) => {
    const learned = new LearnedLimits(new ManualClock())
    rejectOnce(learned.of('acc_1'), rejection(field))
    expect(learned.of('acc_2').dialectOf(endpoint)).toEqual(endpoint.dialect)
    expect(learned.dialectOf(endpoint)).toEqual(endpoint.dialect)
  })
})

test.each(fields.filter((field) => !Object.hasOwn(limitNames, field)))('%s is left out for its account', (field) => {
  const learned = new LearnedLimits(new ManualClock())
  rejectOnce(learned.of('acc_1'), { detail: [{ type: 'extra_forbidden', loc: ['body', field], msg: 'Extra' }] })
  expect(learned.of('acc_1').dialectOf(endpoint).refusedFields).toContain(field)
})

test.each(markFields)('a rejection of a request with its own %s teaches nothing about marks', (field) => {
  const learned = new LearnedLimits(new ManualClock()).of('acc_1')
  const body = { error: { message: `messages.0.content.0.text.${field}: Extra inputs are not permitted` } }
  rejectOnce(learned, body, [field])
  expect(learned.dialectOf(endpoint)).toEqual(endpoint.dialect)
  rejectOnce(learned, body)
  expect(learned.dialectOf(endpoint).refusedFields).toContain(field)
})

test('a missing endpoint and a missing capability are learned for one account, a stated window for all', () => {
  const learned = new LearnedLimits(new ManualClock())
  const [mine, theirs] = [learned.of('acc_1'), learned.of('acc_2')]
  mine.learnMissing(endpoint)
  mine.learnLack(endpoint, 'images')
  expect([mine.isMissing(endpoint), theirs.isMissing(endpoint)]).toEqual([true, false])
  expect([mine.lacks(endpoint, 'images'), theirs.lacks(endpoint, 'images')]).toEqual([true, false])
  expect([mine.knows(endpoint), theirs.knows(endpoint)]).toEqual([true, false])
  mine.learnWindow(endpoint, 4_096)
  expect([mine.windowOf(endpoint), theirs.windowOf(endpoint), theirs.knows(endpoint)]).toEqual([4_096, 4_096, true])
})
