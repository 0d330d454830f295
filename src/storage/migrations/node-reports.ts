import type { Migration } from './migration.ts'

/** Each node writes a summary of its health with its heartbeat, so that every node can show the whole service. */
export const nodeReportsMigration: Migration = {
  name: '023-node-reports',
  worksWith: '021-earlier-versions',
  statements: [`alter table nodes add column report text`],
}
