import { type Json, type JsonObject, isObject } from '../domain/json.ts'
import { isArray } from './fields.ts'

/** Members of vendors' own that are set only by an error. */
const errorMembers = [
  'errors',
  'error_code',
  'error_msg',
  'error_message',
  'errorCode',
  'errorMessage',
  'errcode',
  'errmsg',
  'err_code',
  'err_msg',
  'ErrorMsg',
  'detail',
]
/** Members that are an explanation of an error if there is nothing else. */
const textMembers = ['message', 'msg', 'details', 'title', 'reason']
/** Values with which vendors say that nothing went wrong. */
const goodValue = /^(?:0+|200|20000|none|null|false|ok|okay|succe\w*)?[.!]?$/i
/** Not `default` or `deferred`. */
const faultWord = /error|(?<![a-z])err|fail|(?<!de)fault|exception|abort|cancel/i
const firstErrorStatus = 400

/** Codes of MiniMax, and the code of other providers with the same meaning. */
const minimaxCodes = new Map<Json | undefined, Json>([
  [1002, 'rate_limited'],
  [1039, 'rate_limited'],
  [1041, 'rate_limited'],
  [2045, 'rate_limited'],
  [2056, 'rate_limited'],
  [1004, 'insufficient_quota'],
  [1008, 'insufficient_quota'],
  [2049, 'insufficient_quota'],
  [1026, 'content_filter'],
  [1027, 'content_filter'],
])

/**
 * The error that an object reports, in the convention of any vendor; undefined if it reports none. Gateways send errors
 * with status 200, and inside the objects of an answer, so `error` is only one of its names (contract 10.17).
 */
export function reportedError(object: JsonObject): Json | undefined {
  const { error, object: kind, type, base_resp: reply } = object
  if (!isGood(error)) return isObject(error) ? error : object
  if (kind === 'error' || type === 'error') return object
  // MiniMax. Every answer has it; 0 is success.
  if (isObject(reply) && !isGood(reply['status_code'])) {
    const code = reply['status_code']
    return { code: minimaxCodes.get(code) ?? code, message: reply['status_msg'] }
  }
  const { success, code, status } = object
  if (success === false || isFailedStatus(status)) return object
  if (!isGood(code) && (isMessage(object['message']) || isMessage(object['msg']))) return object
  for (const member of errorMembers) if (!isGood(object[member])) return object
  return undefined
}

/** Whether an object that has no content explains an error instead. */
export function explainsError(object: JsonObject): boolean {
  return textMembers.some((member) => !isGood(object[member]))
}

/** Whether the type or status of something says that it failed. */
export function namesFault(word: string): boolean {
  return faultWord.test(word)
}

/** Some gateways send an error with every answer, whose members are all empty. */
function isGood(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true
  if (isArray(value)) return value.every(isGood)
  if (isObject(value)) return Object.values(value).every(isGood)
  return goodValue.test(String(value))
}

function isMessage(text: Json | undefined): boolean {
  return typeof text === 'string' && !isGood(text)
}

/** `error`, `failed`, or an HTTP status, which some vendors send as text. */
function isFailedStatus(status: Json | undefined): boolean {
  if (isGood(status) || (typeof status !== 'string' && typeof status !== 'number')) return false
  return Number(status) >= firstErrorStatus || namesFault(String(status))
}
