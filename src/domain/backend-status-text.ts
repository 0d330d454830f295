import type { BackendState, HourCount, OpenReason } from './backend-state.ts'
import type { ComponentState } from './service-status.ts'

/** How the state of a backend is displayed to operators, on the status page, and by `backends list`. */
export interface BackendStatusText {
  readonly tone: 'good' | 'warn' | 'bad'
  /** For operators. */
  readonly words: string
  /** For the public. */
  readonly component: ComponentState
  /** A note for the public. */
  readonly note: string | undefined
}

/**
 * The minimum number of failures for "often", which also requires more than a fifth of the requests. Single failures
 * happen.
 */
const leastFailures = 5
const oftenShare = 0.2

/** Why a backend is not asked, for the public. */
export const openNotes: Readonly<Record<OpenReason, string>> = {
  credentials: 'its provider rejects the credential, or the credit there is used up',
  rate: 'its provider is limiting our request rate',
  failing: 'it fails too often',
  slow: 'its answers take too long to begin',
}
/** The note for a backend that an operator took out of use. */
export const heldNote = 'taken out of service by the operator'

/** Turns the state of a backend into a color and words. `hour` has its results in the last hour (contract 18.2). */
export function describeBackend(
  { state, reason, isTroubled, skippedBy }: Pick<BackendState, 'state' | 'reason' | 'isTroubled' | 'skippedBy'>,
  hour?: Pick<HourCount, 'answered' | 'failed'>,
): BackendStatusText {
  switch (state) {
    case 'drained':
    case 'quarantined':
      return { tone: 'warn', words: state, component: 'maintenance', note: heldNote }
    case 'open': {
      const isOpenReason = reason !== undefined && reason !== 'drained' && reason !== 'quarantined'
      return { tone: 'bad', words: 'skipped', component: 'down', note: openNotes[isOpenReason ? reason : 'failing'] }
    }
    case 'half_open':
      return { tone: 'warn', words: 'being tried', component: 'degraded', note: 'it failed and is being tried again' }
    case 'closed':
      if (skippedBy !== undefined)
        return {
          tone: 'warn',
          words: `skipped by ${skippedBy.nodes} of ${skippedBy.of} nodes`,
          component: 'degraded',
          note: 'some of our servers cannot use it',
        }
      return isTroubled || (hour !== undefined && failsOften(hour))
        ? { tone: 'warn', words: 'in use, fails often', component: 'degraded', note: 'it fails often' }
        : { tone: 'good', words: 'in use', component: 'operational', note: undefined }
  }
}

function failsOften({ answered, failed }: Pick<HourCount, 'answered' | 'failed'>): boolean {
  return failed >= leastFailures && failed / (answered + failed) > oftenShare
}
