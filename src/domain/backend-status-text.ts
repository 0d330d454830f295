import type { BackendState, HourCount, OpenReason } from './backend-state.ts'
import type { ComponentState } from './service-status.ts'

/** How a backend is shown wherever it is shown: to operators, on the status page, and by `backends list`. */
export interface BackendStatusText {
  readonly tone: 'good' | 'warn' | 'bad'
  /** For operators. */
  readonly words: string
  /** For everybody. */
  readonly component: ComponentState
  /** What everybody may read beside it. */
  readonly note: string | undefined
}

/** From this many failures on, a share of more than a fifth is often: single failures happen. */
const leastFailures = 5
const oftenShare = 0.2

/** Why a backend is not asked, for everybody. */
export const openNotes: Readonly<Record<OpenReason, string>> = {
  credentials: 'its provider rejects the credential',
  rate: 'its provider limits our rate',
  failing: 'it fails too often',
}
/** What operators did where a backend is kept out. */
export const heldNote = 'taken out of use by the operator for a while'

/** The one place that turns the state of a backend into a color and words. `hour`: how it answered in the last hour (contract 18.2). */
export function describeBackend(
  { state, reason, isTroubled }: Pick<BackendState, 'state' | 'reason' | 'isTroubled'>,
  hour?: Pick<HourCount, 'answered' | 'failed'>,
): BackendStatusText {
  switch (state) {
    case 'drained':
    case 'quarantined':
      return { tone: 'warn', words: state, component: 'maintenance', note: heldNote }
    case 'open': {
      const isOpenReason = reason !== undefined && reason !== 'drained' && reason !== 'quarantined'
      return { tone: 'bad', words: 'not asked', component: 'down', note: openNotes[isOpenReason ? reason : 'failing'] }
    }
    case 'half_open':
      return { tone: 'warn', words: 'being tried', component: 'degraded', note: 'it failed and is being tried again' }
    case 'closed':
      return isTroubled || (hour !== undefined && failsOften(hour))
        ? { tone: 'warn', words: 'in use, fails often', component: 'degraded', note: 'it fails often' }
        : { tone: 'good', words: 'in use', component: 'operational', note: undefined }
  }
}

function failsOften({ answered, failed }: Pick<HourCount, 'answered' | 'failed'>): boolean {
  return failed >= leastFailures && failed / (answered + failed) > oftenShare
}
