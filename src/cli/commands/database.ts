import type { MovedData } from '../../accounts/backups.ts'
import { counted } from '../../runtime/counted.ts'
import type { Command, Invocation, Result } from '../command.ts'

export const databaseToPostgres: Command = {
  name: 'database to-postgres',
  summary:
    'Copy all data from SQLite into the configured PostgreSQL database, and verify the copy. Stop the service first.',
  arguments: [],
  options: [],
  example: 'database to-postgres --config ./svc-router.yaml --data ./data',
  async run(invocation) {
    const moved = await invocation.ports.moveData(invocation.load('pretend'), 'postgres')
    return tell(moved, [
      `The SQLite database was renamed to ${moved.left ?? ''}. Delete it when you no longer need it.`,
      `Next: ${invocation.command('start')}`,
    ])
  },
}

export const databaseToSqlite: Command = {
  name: 'database to-sqlite',
  summary:
    'Copy all data from the configured PostgreSQL database into SQLite, and verify the copy. Stop every node first.',
  arguments: [],
  options: [],
  example: 'database to-sqlite --config ./svc-router.yaml --data ./data',
  async run(invocation: Invocation) {
    const moved = await invocation.ports.moveData(invocation.load('pretend'), 'sqlite')
    return tell(moved, [
      'The PostgreSQL database still has its data, but nodes now refuse to start on it. Their error message explains how to undo that.',
      'Next: remove database.url_env from the configuration, then start the service.',
    ])
  },
}

function tell({ tables, left }: MovedData, talk: readonly string[]): Result {
  const contents = Object.values(tables)
  const rows = contents.reduce((sum, content) => sum + content.rows, 0)
  return {
    text: `copied and verified ${counted(contents.length, 'table')} with ${counted(rows, 'row')}`,
    json: { tables, ...(left === undefined ? {} : { left }) },
    talk,
  }
}
