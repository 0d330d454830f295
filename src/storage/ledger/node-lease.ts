import { type Kysely, sql } from 'kysely'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { dayMs } from '../../runtime/durations.ts'
import { databaseMs, deadAfterMs } from '../nodes.ts'
import type { Tables } from '../schema/schema.ts'
import type { DatabaseClock } from './database-clock.ts'
import { rowFaultOf } from './row-fault.ts'

/** How often a node writes a heartbeat; more often while the database fails. */
const beatMs = 5_000
const failingBeatMs = 500
/** How often this node looks for requests of dead nodes, and for its own that it does not know. */
const tidyMs = 10_000
/** Rows changed per statement. */
const maxRows = 1_000
/** An own request must be this old before it can be unknown: its admission may still be on its way. */
const unknownAfterMs = 10_000
/** Nodes that were last seen this long ago, and left nothing open, are forgotten. */
const forgetAfterMs = 7 * dayMs

export interface LeaseListener {
  /** A heartbeat was written: the database works. */
  onBeat(): void
  onFailed(error: unknown): void
  /** The requests whose end is not in the database yet. */
  inFlight(): ReadonlySet<string>
  /**
   * The node's open requests in the database that are not new and were not in flight before these were read. Those that are
   * still not in flight were never dispatched.
   */
  onOwnRequests(ids: readonly string[]): void
  /** The database refused what a lost request holds of budgets, which was dropped. */
  onBadRow(reason: string): void
  /** What to write with a heartbeat; undefined while the node starts. */
  report(): string | undefined
}

/** Keeps this node's row in `nodes` alive, and settles what dead nodes left behind. */
export class NodeLease {
  readonly #db: Kysely<Tables>
  readonly #id: string
  readonly #clock: Clock
  readonly #databaseClock: DatabaseClock
  readonly #listener: LeaseListener
  #timer: Timer | undefined
  /** When the next heartbeat is due, monotonic milliseconds. */
  #dueMs = Infinity
  #running: Promise<void> | undefined
  #tidiedMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  /** Each heartbeat sets `databaseClock`. */
  constructor(
    db: Kysely<Tables>,
    id: string,
    { clock, databaseClock }: { readonly clock: Clock; readonly databaseClock: DatabaseClock },
    listener: LeaseListener,
  ) {
    this.#db = db
    this.#id = id
    this.#clock = clock
    this.#databaseClock = databaseClock
    this.#listener = listener
  }

  /** Registers the node. @throws the driver's error */
  async start(): Promise<void> {
    await this.#beat()
    this.#schedule(beatMs)
  }

  /** Checks the database soon, because something failed. Never delays a heartbeat: failures can be more frequent than they are. */
  hurry(): void {
    if (this.#running !== undefined) return
    if (this.#dueMs > this.#clock.monotonicMs() + failingBeatMs) this.#schedule(failingBeatMs)
  }

  /** Writes the next heartbeat now, because its report changed. */
  beatNow(): void {
    if (this.#running === undefined) this.#schedule(0)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#running
  }

  /** Removes the node, whose requests have all ended. One that left requests open is removed by others. @throws the driver's error */
  async leave(): Promise<void> {
    await sql`delete from nodes where id = ${this.#id}
      and not exists (select 1 from requests r where r.node_id = nodes.id)`.execute(this.#db)
  }

  #schedule(delayMs: number): void {
    this.#timer?.cancel()
    if (this.#isClosed) return
    this.#dueMs = this.#clock.monotonicMs() + delayMs
    this.#timer = this.#clock.after(delayMs, () => {
      this.#running = this.#run().finally(() => {
        this.#running = undefined
      })
    })
  }

  async #run(): Promise<void> {
    try {
      await this.#beat()
      this.#listener.onBeat()
      await this.#tidy()
      this.#schedule(beatMs)
    } catch (error) {
      this.#listener.onFailed(error)
      this.#schedule(failingBeatMs)
    }
  }

  async #beat(): Promise<void> {
    const report = this.#listener.report() ?? null
    const sentMs = this.#clock.monotonicMs()
    const { rows } = await sql<{ seen_at_ms: number }>`insert into nodes (id, started_at_ms, seen_at_ms, report)
      values (${this.#id}, ${databaseMs}, ${databaseMs}, ${report})
      on conflict (id) do update set seen_at_ms = excluded.seen_at_ms, report = excluded.report
      returning seen_at_ms`.execute(this.#db)
    this.#databaseClock.note(rows[0]!.seen_at_ms, sentMs)
  }

  async #tidy(): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#tidiedMs < tidyMs) return
    this.#tidiedMs = nowMs
    await this.#giveUpDeadNodes()
    // A request can end while they are read: it is then no longer in flight, but among them.
    const known = new Set(this.#listener.inFlight())
    const { rows } = await sql<{ id: string }>`select id from requests
      where node_id = ${this.#id} and state in ('open', 'lost') and admitted_at_ms < ${databaseMs} - ${unknownAfterMs}`.execute(
      this.#db,
    )
    this.#listener.onOwnRequests(rows.map(({ id }) => id).filter((id) => !known.has(id)))
  }

  /**
   * Their units stay charged: the answers may have been delivered (contract 36.3). A node that is not known here was
   * restored with a backup.
   */
  async #giveUpDeadNodes(): Promise<void> {
    await sql`update requests set state = 'lost', charged = units where id in (
      select r.id from requests r left join nodes n on n.id = r.node_id
      where r.node_id is not null and r.state = 'open'
        and coalesce(n.seen_at_ms, 0) < ${databaseMs} - ${deadAfterMs}
      order by r.id limit ${maxRows} for update of r skip locked
    )`.execute(this.#db)
    await this.#bookLostHolds()
    await sql`delete from nodes where seen_at_ms < ${databaseMs} - ${forgetAfterMs}
      and not exists (select 1 from requests r where r.node_id = nodes.id)`.execute(this.#db)
  }

  /** What their requests hold of budgets counts as spent, because what their upstream calls cost is unknown (contract 46.5). */
  async #bookLostHolds(): Promise<void> {
    try {
      await this.#bookLost(maxRows)
    } catch (error) {
      if (rowFaultOf(error) === undefined) throw error
      await this.#bookLostAlone()
    }
  }

  /** A row that the database refuses must not stop the node. */
  async #bookLostAlone(): Promise<void> {
    for (let count = 0; count < maxRows; count += 1) {
      try {
        if ((await this.#bookLost(1)) === 0) return
      } catch (error) {
        const reason = rowFaultOf(error)
        if (reason === undefined) throw error
        this.#listener.onBadRow(reason)
        await sql`update requests set holds = null where id = (
          select id from requests where holds is not null and state = 'lost' order by id limit 1)`.execute(this.#db)
      }
    }
  }

  async #bookLost(limit: number): Promise<number> {
    const { rows } = await sql`select svc_router_book_1(lost.batch) from (
      select jsonb_agg(jsonb_build_object('id', r.id)) as batch from (
        select id from requests where holds is not null and state = 'lost' order by id limit ${limit}
        for update skip locked
      ) r
    ) lost where lost.batch is not null`.execute(this.#db)
    return rows.length
  }
}
