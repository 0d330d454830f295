import type { AuditRecord } from '../domain/audit.ts'
import type { NewTicket, Ticket } from '../domain/tickets.ts'

type TicketState = 'open' | 'closed'

/** Which tickets are read. */
export interface TicketSelection {
  readonly state?: TicketState
  /** So many of them, the newest, are passed over: for the next page. */
  readonly from?: number
}

/** What was asked of support. */
export interface SupportStore {
  /** Keeps a ticket, and forgets those made before `forgetBeforeMs` and the oldest beyond `maxKept`. */
  addTicket(ticket: NewTicket, forgetBeforeMs: number, maxKept: number): Promise<void>
  /** Newest first. */
  listTickets(limit: number, among?: TicketSelection): Promise<readonly Ticket[]>
  countTickets(): Promise<Readonly<Record<TicketState, number>>>
  findTicket(id: string): Promise<Ticket | undefined>
  /** Closes a ticket, or with null opens it again, and appends what tells of it; false where it stands so. */
  closeTicket(id: string, closedAtMs: number | null, record: AuditRecord): Promise<boolean>
}
