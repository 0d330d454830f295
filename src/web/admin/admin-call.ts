import type { AccountsDeps } from '../../accounts/control-plane.ts'
import type { DeclaredDeps } from '../../accounts/declared/apply.ts'
import type { ChangeStore } from '../../accounts/declared/declared-ports.ts'
import type { AccountDataStore } from '../../accounts/ports.ts'
import type { AdminToken } from '../../domain/admin-tokens.ts'
import { isObject, type Json, type JsonObject } from '../../domain/json.ts'
import type { WebDeps } from '../web-deps.ts'
import type { AdminDeps, ReadFile } from './admin-deps.ts'
import { AdminError } from './admin-error.ts'

/** An authenticated request to the admin API. */
export interface AdminCall {
  readonly deps: WebDeps
  readonly admin: AdminDeps
  readonly token: AdminToken
  /** The control plane with the token as the actor. */
  readonly control: AccountsDeps<ChangeStore & AccountDataStore>
  readonly id: string
  readonly query: URLSearchParams
  readonly body: JsonObject
}

export type AdminHandler = (call: AdminCall) => Promise<object>

/** What applying a file needs. */
export function declaredDepsOf({ admin, control }: AdminCall, { serve }: Pick<ReadFile, 'serve'>): DeclaredDeps {
  return { ...control, transactions: admin.transactions, configured: admin.configured, serve }
}

/** A required text. @throws AdminError `body_invalid` */
export function textIn(body: JsonObject, name: string): string {
  const value = body[name]
  if (typeof value === 'string' && value !== '') return value
  throw invalid(name, 'it must be a string that is not empty', `send "${name}"`)
}

export function optionalTextIn(body: JsonObject, name: string): string | undefined {
  return body[name] === undefined ? undefined : textIn(body, name)
}

export function optionalFlagIn(body: JsonObject, name: string): boolean | undefined {
  const value = body[name]
  if (value === undefined || typeof value === 'boolean') return value
  throw invalid(name, 'it must be true or false', `send "${name}": true or false`)
}

export function objectIn(body: JsonObject, name: string): JsonObject {
  const value = body[name]
  if (isObject(value)) return value
  throw invalid(name, 'it must be an object', `send "${name}" as an object`)
}

/** A list of texts; undefined if absent, null if null. */
export function listIn(body: JsonObject, name: string): readonly string[] | null | undefined {
  const value = body[name]
  if (value === undefined || value === null) return value
  if (Array.isArray(value) && value.every((each: Json): each is string => typeof each === 'string')) return value
  throw invalid(name, 'it must be a list of strings', `send "${name}" as a list, or null`)
}

export function oneOfIn<Word extends string>(
  body: JsonObject,
  name: string,
  words: readonly Word[],
  usual: Word,
): Word {
  const value = body[name] ?? usual
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw invalid(name, 'it is not one of the allowed values', `use ${words.join(', ')}`)
}

export function invalid(name: string, what: string, fix: string): AdminError {
  return new AdminError('body_invalid', [{ path: [name], what, fix }])
}
