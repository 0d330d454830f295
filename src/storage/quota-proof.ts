/** The counter that proofs increment: stored among the quotas, for no real account. */
const proofRow = `account_id = 'proof' and period_id = 'proof'`

/** Increments the counter and returns its value. */
export const writeProof = `insert into usage (account_id, period_id, used) values ('proof', 'proof', 1)
  on conflict (account_id, period_id) do update set used = usage.used + 1 returning used`

/** Reads the counter. Another proof may have incremented it meanwhile. */
export const readProof = `select used from usage where ${proofRow}`
