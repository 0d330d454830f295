/** The counter that proofs move: it stands among the quotas' own and belongs to no account. */
const place = `account_id = 'proof' and period_id = 'proof'`

/** Moves the counter and gives where it stands then. */
export const writeProof = `insert into usage (account_id, period_id, used) values ('proof', 'proof', 1)
  on conflict (account_id, period_id) do update set used = usage.used + 1 returning used`

/** Where the counter stands. Another proof may have moved it further meanwhile. */
export const readProof = `select used from usage where ${place}`
