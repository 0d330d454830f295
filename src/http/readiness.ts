/** The reason of a process that is about to end. */
export const drainingReason = 'draining'

/** Whether new requests should be sent to this process, and if not, why (contract 32.5). */
export interface Readiness {
  readonly ready: boolean
  readonly reasons: readonly string[]
}
