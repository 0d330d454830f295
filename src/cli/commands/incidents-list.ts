import { stateOf } from '../../domain/incidents.ts'
import type { Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

const maxListed = 100

export const incidentsList: Command = {
  name: 'incidents list',
  summary: 'List the incidents on the status page, newest first.',
  arguments: [],
  options: [],
  example: 'incidents list',
  run: (invocation) =>
    invocation.withStore(async ({ incidents }) => {
      const all = await incidents.store.listIncidents(0, maxListed)
      const rows = all.map((incident) => [
        incident.id,
        incident.title,
        incident.impact,
        stateOf(incident),
        writeTime(incident.createdAtMs),
      ])
      return {
        text: all.length === 0 ? '' : writeTable([['ID', 'TITLE', 'IMPACT', 'STATE', 'OPENED'], ...rows]),
        json: all,
        talk: [`Next: ${invocation.command('incidents open TITLE TEXT')}`],
      }
    }),
}
