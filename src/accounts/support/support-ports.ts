import type { AuditRecord } from '../../domain/audit.ts'
import type { NewTicket, Ticket } from '../../domain/tickets.ts'

type TicketState = 'open' | 'closed'

/** Filters for a list of tickets. */
interface TicketSelection {
  readonly state?: TicketState
  /** How many of the newest tickets to skip, for the next page. */
  readonly from?: number
}

/** Stored support tickets. */
export interface SupportStore {
  /** Stores a ticket, and deletes those created before `forgetBeforeMs` and the oldest beyond `maxKept`. */
  addTicket(ticket: NewTicket, forgetBeforeMs: number, maxKept: number): Promise<void>
  /** Newest first. */
  listTickets(limit: number, among?: TicketSelection): Promise<readonly Ticket[]>
  countTickets(): Promise<Readonly<Record<TicketState, number>>>
  findTicket(id: string): Promise<Ticket | undefined>
  /**
   * Closes a ticket, or reopens it if given null, and appends the audit event; false if it is already in that state.
   */
  closeTicket(id: string, closedAtMs: number | null, record: AuditRecord): Promise<boolean>
}
