import { html } from 'hono/html'
import type { BackendCondition, HourCount } from '../../domain/backend-condition.ts'
import { holdsOf, type BackendControl } from '../../domain/backend-controls.ts'
import { describeBackend } from '../../domain/backend-words.ts'
import type { Html } from '../layout.ts'

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
export function standingTag(condition: BackendCondition, hour: HourCount): Html {
  const { tone, words } = describeBackend(condition, hour)
  return html`<span class="tag ${tone}">${words}</span>`
}
