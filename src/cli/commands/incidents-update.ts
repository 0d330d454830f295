import { updateIncident } from '../../accounts/status/incidents.ts'
import { incidentStates } from '../../domain/incidents.ts'
import type { Command } from '../command.ts'
import { oneOf } from '../value-shapes.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const incidentsUpdate: Command = {
  name: 'incidents update',
  summary: `Post an update to an incident, with its state: ${incidentStates.join(', ')}.`,
  arguments: ['INCIDENT', 'STATE', 'TEXT'],
  shapes: { STATE: oneOf(incidentStates) },
  options: [],
  example: 'incidents update inc_… resolved "It works again."',
  run(invocation) {
    const example = 'incidents update INCIDENT STATE TEXT'
    const id = invocation.argument(0, 'the incident', example)
    const given = invocation.argument(1, 'the state', example)
    const text = invocation.argument(2, 'the text', example)
    const state = incidentStates.find((known) => known === given)
    if (state === undefined)
      throw new CommandError(exitCodes.usage, 'there is no such state', `one of: ${incidentStates.join(', ')}`)
    return invocation.withStore(async ({ incidents }) => {
      const update = await updateIncident(incidents, id, state, text)
      return {
        text: update.id,
        json: update,
        talk: ['The status page shows it within ten seconds.', `Next: ${invocation.command('incidents list')}`],
      }
    })
  },
}
