import { html } from 'hono/html'
import type { BackendCondition } from '../../domain/backend-condition.ts'
import { holdsOf, type BackendControl } from '../../domain/backend-controls.ts'
import type { Html } from '../layout.ts'

type State = BackendCondition['state']

const tones: Readonly<Record<State, 'good' | 'warn' | 'bad'>> = {
  closed: 'good',
  open: 'bad',
  half_open: 'warn',
  quarantined: 'bad',
  drained: 'warn',
}
/** The state of a backend in words, wherever operators read it. */
export const stateWords: Readonly<Record<State, string>> = {
  closed: 'in use',
  open: 'not asked',
  half_open: 'being tried',
  quarantined: 'quarantined',
  drained: 'drained',
}

/**
 * The state of a backend as operators read it. What they decided is read from the store: a server follows within a second,
 * and until then would show the page after a button as it was before.
 */
export function standing(condition: BackendCondition, controls: readonly BackendControl[]): BackendCondition {
  const hold = holdsOf(controls).get(condition.backendId)
  if (hold !== undefined)
    return { ...condition, state: hold.kind, reason: hold.kind, sinceMs: hold.sinceMs, untilMs: undefined }
  const isHeld = condition.reason === 'drained' || condition.reason === 'quarantined'
  const { sinceMs = 0 } = condition
  const isReleased = controls.some(
    ({ backendId, kind, atMs }) => backendId === condition.backendId && kind === 'released' && atMs >= sinceMs,
  )
  if (!isHeld && !isReleased) return condition
  return { ...condition, state: 'closed', reason: undefined, sinceMs: undefined, untilMs: undefined }
}

/** The state of a backend as a tag behind its name. */
export function standingTag({ state, isTroubled }: Pick<BackendCondition, 'state' | 'isTroubled'>): Html {
  if (state === 'closed' && isTroubled) return html`<span class="tag warn">in use, fails often</span>`
  return html`<span class="tag ${tones[state]}">${stateWords[state]}</span>`
}
