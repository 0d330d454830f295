import { html } from 'hono/html'
import { holdsOf, type BackendControl } from '../../domain/backend-controls.ts'
import type { BackendState, HourCount } from '../../domain/backend-state.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import type { Html } from '../components/html.ts'

/**
 * The state of a backend for operators. Operators' decisions are read from the store, because servers apply them with
 * up to a second of delay, and the page after an action would still show the old state.
 */
export function backendStanding(condition: BackendState, controls: readonly BackendControl[]): BackendState {
  const hold = holdsOf(controls).get(condition.backendId)
  if (hold !== undefined)
    return { ...condition, state: hold.kind, reason: hold.kind, sinceMs: hold.sinceMs, untilMs: undefined }
  const isHeld = condition.reason === 'drained' || condition.reason === 'quarantined'
  const { sinceMs = 0 } = condition
  const isReleased = controls.some(
    ({ backendId, kind, atMs }) => backendId === condition.backendId && kind === 'released' && atMs >= sinceMs,
  )
  if (!isHeld && !isReleased) return condition
  const inUse = {
    state: 'closed',
    reason: undefined,
    sinceMs: undefined,
    untilMs: undefined,
    skippedBy: undefined,
  } as const
  return { ...condition, ...inUse }
}

/** The state of a backend as a tag. */
export function standingTag(condition: BackendState, hour: HourCount): Html {
  const { tone, words } = describeBackend(condition, hour)
  return html`<span class="tag ${tone}">${words}</span>`
}
