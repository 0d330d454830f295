import type { AuditRecord } from '../domain/audit.ts'
import type { NewTicket, Ticket } from '../domain/tickets.ts'

/** What was asked of support. */
export interface SupportStore {
  /** Keeps a ticket, and forgets those made before `forgetBeforeMs` and the oldest beyond `maxKept`. */
  addTicket(ticket: NewTicket, forgetBeforeMs: number, maxKept: number): Promise<void>
  /** Newest first. */
  listTickets(limit: number): Promise<readonly Ticket[]>
  findTicket(id: string): Promise<Ticket | undefined>
  /** Closes a ticket, or with null opens it again, and appends what tells of it; false where it stands so. */
  closeTicket(id: string, closedAtMs: number | null, record: AuditRecord): Promise<boolean>
}
