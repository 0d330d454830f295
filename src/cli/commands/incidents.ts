import { maxTextCharacters, maxTitleCharacters, openIncident, updateIncident } from '../../accounts/status/incidents.ts'
import { impacts, incidentStates, stateOf } from '../../domain/incidents.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { oneOf, textUpTo } from '../value-shapes.ts'

const updateText = textUpTo(maxTextCharacters, 'We are investigating.')

export const incidentsOpen: Command = {
  name: 'incidents open',
  summary: `Open an incident on the status page. TITLE can have up to ${maxTitleCharacters} characters, and TEXT up to ${maxTextCharacters}.`,
  arguments: ['TITLE', 'TEXT'],
  shapes: { TITLE: textUpTo(maxTitleCharacters, 'Slow responses'), TEXT: updateText },
  options: [
    {
      name: 'impact',
      value: 'IMPACT',
      shape: oneOf(impacts),
      summary: `The impact: ${impacts.join(', ')}. Default minor.`,
    },
  ],
  example: 'incidents open "Slow responses" "We are investigating." --impact minor',
  run(invocation) {
    const example = 'incidents open TITLE TEXT'
    const title = invocation.argument(0, 'the title', example)
    const text = invocation.argument(1, 'the text', example)
    const given = invocation.line.option('impact') ?? 'minor'
    const impact = impacts.find((known) => known === given)
    if (impact === undefined)
      throw new CommandError(exitCodes.usage, 'there is no such impact', `--impact ${impacts.join('|')}`)
    return invocation.withStore(async ({ incidents }) => {
      const incident = await openIncident(incidents, { title, impact, text })
      return {
        text: incident.id,
        json: incident,
        talk: [
          'The status page shows it within ten seconds.',
          `Next: ${invocation.command(`incidents update ${incident.id} resolved "It works again."`)}`,
        ],
      }
    })
  },
}

export const incidentsUpdate: Command = {
  name: 'incidents update',
  summary: `Post an update of at most ${maxTextCharacters} characters to an incident, with its state: ${incidentStates.join(', ')}.`,
  arguments: ['INCIDENT', 'STATE', 'TEXT'],
  shapes: { STATE: oneOf(incidentStates), TEXT: updateText },
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

const maxListed = 100

export const incidentsList: Command = {
  name: 'incidents list',
  summary: `List the latest ${maxListed} incidents, newest first, including those that the status page no longer shows.`,
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
