import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Backend } from '../ports.ts'

/** Maximum number of backends that accounts own. */
const maxOwned = 10_000
/** With fewer of them, the order in which they were called need not be known yet. */
const orderedFrom = maxOwned / 2

export type BackendKey = Pick<Backend, 'id' | 'owner'>

/**
 * What a process knows of each backend. The operator's backends are as many as are configured, so nothing of them is
 * ever evicted. Accounts can connect any number over time: of theirs, those called last are kept (contract 7.21, 29.1).
 */
export class ByBackend<Value> {
  readonly #shared = new Map<string, Value>()
  readonly #owned = new BoundedMap<string, Value>(maxOwned)

  get(backendId: string): Value | undefined {
    return this.#shared.get(backendId) ?? this.#owned.get(backendId)
  }

  /** The value of a backend that is being called. */
  getForCall({ id, owner }: BackendKey): Value | undefined {
    if (owner === undefined) return this.#shared.get(id)
    const value = this.#owned.get(id)
    if (value !== undefined && this.#owned.size >= orderedFrom) this.#owned.setLast(id, value)
    return value
  }

  add({ id, owner }: BackendKey, value: Value): void {
    if (owner === undefined) this.#shared.set(id, value)
    else this.#owned.set(id, value)
  }

  delete(backendId: string): void {
    this.#shared.delete(backendId)
    this.#owned.delete(backendId)
  }
}
