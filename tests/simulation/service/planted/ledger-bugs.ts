import type { PlantedBug } from './planted-bug.ts'

const meter = 'domain/account-meter.ts'
const journal = 'storage/ledger/journal.ts'
const recovery = 'storage/ledger/recovery.ts'
const ledger = 'storage/ledger/ledger-sqlite.ts'
const admission = 'storage/ledger/memory-admission.ts'
const run = 'gateway/request/request-run.ts'

/** Bugs of counting and charging. */
export const ledgerBugs: readonly PlantedBug[] = [
  {
    name: 'quota-ignores-running-requests',
    story:
      'Check, then act: requests in flight do not count, so concurrent ones overdraw the month (new-api 6609, LiteLLM 34732).',
    patches: [
      {
        file: meter,
        find: 'if (used + reserved + units > plan.requestsPerMonth)',
        replace: 'if (used + units > plan.requestsPerMonth)',
      },
    ],
  },
  {
    name: 'minute-of-50-seconds',
    story: 'The window of the rate limit is shorter than it says.',
    patches: [
      {
        file: 'runtime/minute-log.ts',
        find: 'export const minuteMs = 60_000',
        replace: 'export const minuteMs = 50_000',
      },
    ],
  },
  {
    name: 'fresh-minute-after-restart',
    story:
      'The rate limit forgets the last minute when the process starts (GitHub: evicted entries gave fresh windows).',
    patches: [
      { file: ledger, find: 'new AccountMeter(now, recent, usage)', replace: 'new AccountMeter(now, [], usage)' },
    ],
  },
  {
    name: 'used-units-not-read',
    story: 'A balance that a restart loads too high (Unkey: the credits of an expired cache entry).',
    patches: [
      { file: ledger, find: 'new AccountMeter(now, recent, usage)', replace: 'new AccountMeter(now, recent, [])' },
    ],
  },
  {
    name: 'double-refund',
    story: 'A settled request gives back its reservation twice (new-api 5556).',
    patches: [
      {
        file: meter,
        find: '    month.reserved -= reserved',
        replace: '    month.reserved -= 2 * reserved',
      },
    ],
  },
  {
    name: 'settled-in-the-wrong-month',
    story: 'A request that ends after midnight is charged to the month in which it ended.',
    patches: [
      {
        file: meter,
        find: 'const isCurrent = periodId === this.#month.periodId',
        replace: 'const isCurrent = periodId !== undefined',
      },
    ],
  },
  {
    name: 'minute-taken-by-refusals',
    story: 'A request that the month rejects takes a place of the minute: phantom 429s (LiteLLM 27639).',
    patches: [
      {
        file: meter,
        find: '    if (used + reserved + units > plan.requestsPerMonth) return monthDenial(this.#period)\n    this.#minute.add(now.monotonicMs, keyId)',
        replace:
          '    this.#minute.add(now.monotonicMs, keyId)\n    if (used + reserved + units > plan.requestsPerMonth) return monthDenial(this.#period)',
      },
    ],
  },
  {
    name: 'leak-when-client-leaves',
    story: 'A request whose client disconnects is never settled (LiteLLM 30522, otari 128).',
    patches: [
      {
        file: run,
        find: "    this.#settle(outcome, 'none')\n    this.#source.current?.stop(",
        replace: "    if (!this.#clientDisconnected) this.#settle(outcome, 'none')\n    this.#source.current?.stop(",
      },
    ],
  },
  {
    name: 'failures-are-charged',
    story: 'A request that failed before its first content is charged (eliza 11637).',
    patches: [{ file: run, find: '(hasLeft && isDispatched) ||', replace: 'isDispatched ||' }],
  },
  {
    name: 'broken-streams-are-free',
    story: 'A stream that breaks after content costs nothing: the refund is too generous (trillian 2022).',
    patches: [
      {
        file: run,
        find: '...this.#outcome(units, errorCode), totalMs',
        replace: '...this.#outcome(errorCode === undefined ? units : 0, errorCode), totalMs',
      },
    ],
  },
  {
    name: 'leaving-early-is-free',
    story: 'Whoever disconnects during a stream pays nothing, and has read the answer.',
    patches: [
      {
        file: run,
        find: '...this.#outcome(units, errorCode), totalMs',
        replace: "...this.#outcome(errorCode === 'client_closed' ? 0 : units, errorCode), totalMs",
      },
    ],
  },
  {
    name: 'delivered-before-durable',
    story: 'Content is sent before its charge is on disk, and a crash loses the charge.',
    patches: [
      {
        file: admission,
        find: '    if (entry.isVoid || !entry.batch.isDurable) throw',
        replace: '    if (entry.isVoid) throw',
      },
      {
        file: admission,
        find: '    return this.ledger.journal.durable(this.entry)',
        replace: '    return undefined',
      },
    ],
  },
  {
    name: 'delivery-not-marked',
    story: 'The mark that says that an answer left is missing, so that a crash refunds it.',
    patches: [{ file: admission, find: '    this.ledger.marks.add(entry.opening.id)\n', replace: '' }],
  },
  {
    name: 'stream-not-recorded-as-begun',
    story: 'A restart in order forgets that a stream had begun, and the next start refunds it.',
    patches: [
      {
        file: recovery,
        find: "  if (row.state === 'delivered') return { state: 'lost', charged: row.units }",
        replace: "  if (row.state === 'delivered') return { state: 'lost', charged: 0 }",
      },
    ],
  },
  {
    name: 'recovery-charges-all',
    story: 'Recovery charges requests that nobody received.',
    patches: [
      {
        file: recovery,
        find: '  const mayBeDelivered = row.is_stored === 1 || mayHaveBeenDelivered(row.id, row.due_mark, history)',
        replace: '  const mayBeDelivered = history.next.length > 0',
      },
    ],
  },
  {
    name: 'recovery-charges-nothing',
    story: 'Recovery refunds everything that was open, also what was delivered.',
    patches: [
      {
        file: recovery,
        find: "  if (row.state === 'open') return { state: 'lost', charged: mayBeDelivered ? row.units : 0 }",
        replace: "  if (row.state === 'open') return { state: 'lost', charged: 0 }",
      },
    ],
  },
  {
    name: 'recovery-forgets-the-sum',
    story:
      'Recovery changes what a request is charged, and not the units of the month: two sums that differ (decision 3).',
    patches: [
      {
        file: recovery,
        find: '      if (charged !== row.charged) charge.run',
        replace: '      if (charged < row.charged) charge.run',
      },
    ],
  },
  {
    name: 'sum-of-a-batch-lost',
    story: 'Two charges of one account in one batch count once.',
    patches: [
      { file: journal, find: '        account.batchUnits += units', replace: '        account.batchUnits = units' },
    ],
  },
  {
    name: 'canceled-charge-stays-on-disk',
    story: 'A charge that is canceled because the disk fails is written after all.',
    patches: [
      {
        file: journal,
        find: '    this.#listener.onVoided(entry)\n    this.#queue(entry, writeVoid)',
        replace: '    this.#listener.onVoided(entry)',
      },
    ],
  },
  {
    name: 'durable-when-posted',
    story: 'A batch counts as written when it is sent to the thread (a replay buffer in memory, as in Unkey).',
    patches: [
      {
        file: journal,
        find: '    this.#posted.push(batch)\n',
        replace: '    this.#posted.push(batch)\n    batch.isDurable = true\n',
      },
    ],
  },
]
