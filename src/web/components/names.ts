import type { StoredKey, Upstream } from '../../domain/accounts.ts'
import { playgroundKeyId } from '../../domain/keys.ts'

/** An account's names for keys and backends. */
export interface Names {
  readonly key: (keyId: string) => string
  readonly backend: (backendId: string) => string
  /** The model of a backend. */
  readonly model: (backendId: string) => string
}

/** Shown as the key of requests made in the playground. */
export const playgroundName = 'Playground'

/** Looks up names by id; returns the id itself if it no longer exists. */
export function buildNames(
  keys: readonly StoredKey[],
  upstreams: readonly Upstream[],
  configured: readonly { readonly id: string; readonly model: string }[] = [],
): Names {
  const keyNames = new Map([[playgroundKeyId, playgroundName], ...keys.map(({ id, name }) => [id, name] as const)])
  const backendNames = new Map(upstreams.map(({ id, provider, model }) => [id, `${provider}: ${model} (yours)`]))
  const models = new Map([...configured, ...upstreams].map(({ id, model }) => [id, model]))
  return {
    key: (keyId) => keyNames.get(keyId) ?? keyId,
    backend: (backendId) => backendNames.get(backendId) ?? backendId,
    model: (backendId) => models.get(backendId) ?? backendId,
  }
}
