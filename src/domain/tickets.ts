/** A new ticket. */
export type NewTicket = Omit<Ticket, 'closedAtMs'>

/** A support request. It was checked before it was stored and contains no credentials. */
export interface Ticket {
  /** `tic_…` */
  readonly id: string
  /** Null if the author was not signed in. */
  readonly accountId: string | null
  /** The address that receives the answer. */
  readonly replyTo: string
  /** The request that the ticket concerns, if one was named. */
  readonly requestId: string | null
  readonly text: string
  readonly createdAtMs: number
  /** Null if it is open. */
  readonly closedAtMs: number | null
}
