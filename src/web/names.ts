import type { StoredKey, Upstream } from '../domain/accounts.ts'

/** What an account calls what its records name by id. */
export interface Names {
  readonly key: (keyId: string) => string
  readonly backend: (backendId: string) => string
}

/** Names by id; the id itself where nothing of that id is there any more. */
export function namesOf(keys: readonly StoredKey[], upstreams: readonly Upstream[]): Names {
  const keyNames = new Map(keys.map(({ id, name }) => [id, name]))
  const backendNames = new Map(upstreams.map(({ id, provider, model }) => [id, `${provider}: ${model} (yours)`]))
  return {
    key: (keyId) => keyNames.get(keyId) ?? keyId,
    backend: (backendId) => backendNames.get(backendId) ?? backendId,
  }
}
