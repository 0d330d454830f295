import { controlBackend, type BackendCommand } from '../../accounts/backends/backend-controls.ts'
import { suggest } from '../../config/check-shape.ts'
import { holdReasons, type HoldReason } from '../../domain/backend-controls.ts'
import type { Command, Invocation } from '../command.ts'
import { oneOf } from '../value-shapes.ts'
import { CommandError, exitCodes } from '../failures.ts'

const reasonOption = {
  name: 'reason',
  value: 'REASON',
  shape: oneOf(holdReasons),
  summary: `The reason: ${holdReasons.join(', ')}. Default ${holdReasons[0]}.`,
} as const

export const backendsDrain = hold(
  'drain',
  'drained',
  'Stop sending new requests to a backend; running requests finish.',
)
export const backendsQuarantine = hold(
  'quarantine',
  'quarantined',
  'Take a backend that you do not trust out of use until it is released.',
)
export const backendsUndrain = free('undrain', 'undrained', 'Send requests to a drained backend again.')
export const backendsRelease = free(
  'release',
  'released',
  'End a quarantine, including one that the service started by itself.',
)

function hold(verb: string, step: 'drained' | 'quarantined', summary: string): Command {
  return command(verb, summary, [reasonOption], (invocation, backend) => {
    const given = invocation.line.option('reason') ?? holdReasons[0]
    const reason = holdReasons.find((known): known is HoldReason => known === given)
    if (reason === undefined)
      throw new CommandError(exitCodes.usage, 'there is no such reason', `--reason ${holdReasons.join('|')}`)
    return { step, backend, reason }
  })
}

function free(verb: string, step: 'undrained' | 'released', summary: string): Command {
  return command(verb, summary, [], (_, backend) => ({ step, backend }))
}

function command(
  verb: string,
  summary: string,
  options: Command['options'],
  read: (invocation: Invocation, backend: string) => BackendCommand,
): Command {
  return {
    name: `backends ${verb}`,
    summary,
    arguments: ['BACKEND'],
    options,
    example: `backends ${verb} BACKEND`,
    run(invocation) {
      const backend = invocation.argument(0, 'the backend', 'backends list')
      const order = read(invocation, backend)
      return invocation.withStore(async ({ config, backends }) => {
        const known = config.backends.map(({ id }) => id)
        const isHold = order.step === 'drained' || order.step === 'quarantined'
        // A backend that was removed from the configuration can still be released.
        if (isHold && !known.includes(backend))
          throw new CommandError(
            exitCodes.failure,
            'the configuration has no backend with that name',
            suggest(backend, known),
          )
        await controlBackend(backends, order)
        return {
          text: backend,
          json: order,
          talk: [
            `${backend} is ${order.step}. Running servers apply this within a second.`,
            `Next: ${invocation.command('backends list')}`,
          ],
        }
      })
    },
  }
}
