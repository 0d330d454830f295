import type { Ticket } from '../domain/tickets.ts'

/** What was asked of support. */
export interface SupportStore {
  /** Keeps a ticket, and forgets those made before `forgetBeforeMs` and the oldest beyond `maxKept`. */
  addTicket(ticket: Ticket, forgetBeforeMs: number, maxKept: number): Promise<void>
  /** Newest first. */
  listTickets(limit: number): Promise<readonly Ticket[]>
}
