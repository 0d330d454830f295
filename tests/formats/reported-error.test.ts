import { expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import { reportedError } from '../../src/formats/reported-error.ts'

const successes: JsonObject[] = [
  { status: 'completed' },
  { status: 'default' },
  { status: 'deferred' },
  { status: 200 },
  { status: 20_000, msg: 'ok' },
  { code: 20_000, message: 'OK', status: true },
  { code: 'print(1)', type: 'response.code_interpreter_call_code.done' },
  { error: {} },
  { error: { code: 0, message: '' } },
  { errors: [], success: true },
  { message: { role: 'assistant' }, code: 5 },
]

test.each(successes.map((object) => JSON.stringify(object)))('%s reports no error', (json) => {
  expect(reportedError(JSON.parse(json) as JsonObject)).toBeUndefined()
})

const errors: JsonObject[] = [
  { status: 'error' },
  { status: 'ERR_TIMEOUT' },
  { status: 'cancelled' },
  { status: '449', msg: 'x' },
  { status: 500 },
  { error: true },
  { error: 'x' },
  { errors: [{ message: 'x' }] },
  { error_code: 17 },
  { code: 17, msg: 'x' },
  { success: false },
]

test.each(errors.map((object) => JSON.stringify(object)))('%s reports an error', (json) => {
  const object = JSON.parse(json) as JsonObject
  expect(reportedError(object)).toEqual(object)
})
