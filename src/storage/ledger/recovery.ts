import type { DatabaseSync } from 'node:sqlite'
import { responseIdFor } from '../../domain/stored-responses.ts'
import { addSpendingSql, recoverFromName } from '../sqlite/ledger-batch.ts'
import { type DeliveryHistory, mayHaveBeenDelivered } from './delivery-marks.ts'
import { bookedOfLost } from './lost-holds.ts'

interface Undecided {
  readonly id: string
  readonly account_id: string
  readonly period_id: string
  readonly units: number
  readonly state: string
  readonly charged: number
  readonly due_mark: number | null
  readonly is_stored: number
}

interface Decision {
  readonly state: 'done' | 'lost'
  readonly charged: number
}

/** Whether content of the request is stored for retries: then it counts as delivered, marked or not (contract 39.4). */
export const storedContent = 'exists (select 1 from generations where request_id = requests.id and has_content = 1)'

/**
 * Decides every request that an earlier process left open, in one transaction: delivered answers are charged, others
 * are not, and are deleted if they were already stored; if marks may be lost, all are charged (contract 6.13, 32.11). Returns the id from which on records may be
 * undecided.
 */
export function recoverRequests(
  database: DatabaseSync,
  history: DeliveryHistory,
  onBadRow: (reason: string) => void = () => {},
): string {
  database.exec('begin immediate')
  try {
    const from = database.prepare('select value from ledger where name = ?').get(recoverFromName)?.value ?? ''
    const rows = database
      .prepare(
        `select id, account_id, period_id, units, state, charged, due_mark, ${storedContent} as is_stored from requests
         where id >= ? and (state in ('open', 'delivered') or due_mark is not null)`,
      )
      .all(from) as unknown as Undecided[]
    const decide = database.prepare('update requests set state = ?, charged = ?, due_mark = null where id = ?')
    const charge = database.prepare(
      `insert into usage (account_id, period_id, used) values (?, ?, ?)
       on conflict (account_id, period_id) do update set used = used + excluded.used`,
    )
    // What is not charged cannot be read (contract 6.20).
    const deleteItems = database.prepare('delete from stored_items where response_id = ?')
    const deleteAnswer = database.prepare('delete from stored_responses where id = ?')
    for (const row of rows) {
      const { state, charged } = decideRequest(row, history)
      decide.run(state, charged, row.id)
      if (charged !== row.charged) charge.run(row.account_id, row.period_id, charged - row.charged)
      if (charged > 0) continue
      const answer = responseIdFor(row.id)
      deleteItems.run(answer)
      deleteAnswer.run(answer)
    }
    bookLostHolds(database, from, onBadRow)
    // Nothing is undecided now; admitting a request with a lower id moves this back first.
    const latest = String(database.prepare('select max(id) as id from requests').get()?.id ?? '')
    database
      .prepare('insert into ledger (name, value) values (?, ?) on conflict (name) do update set value = excluded.value')
      .run(recoverFromName, latest)
    database.exec('commit')
    return latest
  } catch (error) {
    if (database.isTransaction) database.exec('rollback')
    throw error
  }
}

/** What requests without an end hold is spent (contract 46.5). */
function bookLostHolds(database: DatabaseSync, from: unknown, onBadRow: (reason: string) => void): void {
  const rows = database
    .prepare('select id, account_id, holds from requests where id >= ? and holds is not null')
    .all(String(from))
  const limitOf = database.prepare('select amount from budgets where id = ?')
  const book = database.prepare('update requests set holds = null, booked = ? where id = ?')
  const spend = database.prepare(addSpendingSql)
  for (const { id, account_id: accountId, holds } of rows) {
    const { booked, isSound } = bookedOfLost(String(holds), (budgetId) =>
      Number(limitOf.get(budgetId)?.['amount'] ?? 0),
    )
    if (!isSound) onBadRow('holds')
    book.run(JSON.stringify(booked), String(id))
    for (const { budgetId, bucketMs, spent } of booked) spend.run(String(accountId), budgetId, bucketMs, spent)
  }
}

function decideRequest(row: Undecided, history: DeliveryHistory): Decision {
  if (row.state === 'delivered') return { state: 'lost', charged: row.units }
  const mayBeDelivered = row.is_stored === 1 || mayHaveBeenDelivered(row.id, row.due_mark, history)
  if (row.state === 'open') return { state: 'lost', charged: mayBeDelivered ? row.units : 0 }
  return mayBeDelivered ? { state: 'done', charged: row.charged } : { state: 'lost', charged: 0 }
}
