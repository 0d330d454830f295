import { costColumns } from './costs.ts'
import type { Migration } from './migration.ts'
import { createSettle } from './settle-function.ts'

/** `svc_router_settle_2` with the session. Earlier versions continue to call that one. */
const settle = createSettle('svc_router_settle_3', {
  values: `${costColumns.values} session = g.session,`,
  types: `${costColumns.types}, session text`,
})

/** The session of each request (contract 42.13). Requests that an earlier version ends belong to none. */
export const requestSessionsMigration: Migration = {
  name: '032-request-sessions',
  worksWith: '021-earlier-versions',
  statements: [
    `alter table requests add column session text`,
    // Requests without a session, such as short ones, take no space here.
    `create index requests_by_session on requests (account_id, session) where session is not null`,
  ],
  own: { sqlite: [], postgres: [settle] },
}
