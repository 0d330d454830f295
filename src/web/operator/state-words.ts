import { html } from 'hono/html'
import type { BackendCondition } from '../../domain/backend-condition.ts'
import { holdsOf, type BackendControl } from '../../domain/backend-controls.ts'
import type { Html } from '../layout.ts'

type State = BackendCondition['state']

const tones: Readonly<Record<State, 'good' | 'warn' | 'bad'>> = {
  usable: 'good',
  cooling: 'warn',
  quarantined: 'bad',
  drained: 'warn',
}
const words: Readonly<Record<State, string>> = {
  usable: 'in use',
  cooling: 'left alone',
  quarantined: 'quarantined',
  drained: 'drained',
}

/**
 * How a backend stands, as operators are told. What they said themselves is read from where it is kept: a server follows
 * within a second, and until then would show the page after a button as it was before.
 */
export function standing(condition: BackendCondition, controls: readonly BackendControl[]): BackendCondition {
  const hold = holdsOf(controls).get(condition.backendId)
  if (hold !== undefined)
    return { ...condition, state: hold.kind, reason: hold.kind, sinceMs: hold.sinceMs, untilMs: undefined }
  if (condition.reason !== 'drained' && condition.reason !== 'quarantined') return condition
  return { ...condition, state: 'usable', reason: undefined, sinceMs: undefined, untilMs: undefined }
}

/** How a backend stands, as a mark behind its name. */
export function standingTag({ state }: Pick<BackendCondition, 'state'>): Html {
  return html`<span class="tag ${tones[state]}">${words[state]}</span>`
}
