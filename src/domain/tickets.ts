/** A ticket as it is filed. */
export type NewTicket = Omit<Ticket, 'closedAtMs'>

/** What somebody asked of support. It was looked through before it was kept, and holds nothing that lets anybody in. */
export interface Ticket {
  /** `tic_…` */
  readonly id: string
  /** Null where whoever asked was not signed in. */
  readonly accountId: string | null
  /** Where the answer goes. */
  readonly replyTo: string
  /** The request that it is about, where one was named. */
  readonly requestId: string | null
  readonly text: string
  readonly createdAtMs: number
  /** Null where it is open. */
  readonly closedAtMs: number | null
}
