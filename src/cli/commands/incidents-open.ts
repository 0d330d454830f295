import { openIncident } from '../../accounts/status/incidents.ts'
import { impacts } from '../../domain/incidents.ts'
import type { Command } from '../command.ts'
import { oneOf } from '../value-shapes.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const incidentsOpen: Command = {
  name: 'incidents open',
  summary: 'Open an incident on the status page.',
  arguments: ['TITLE', 'TEXT'],
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
