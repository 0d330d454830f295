import { nearest } from '../../domain/profiles.ts'
import type { Command, Invocation, Result } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable } from '../terminal/table.ts'
import { cache } from './demo/cache.ts'
import type { Demo } from './demo/demo.ts'
import { failover } from './demo/failover.ts'
import { fusion } from './demo/fusion.ts'
import { quota } from './demo/quota.ts'
import { ratelimit } from './demo/ratelimit.ts'
import { runDemo } from './demo/run-demo.ts'

const demos: readonly Demo[] = [failover, ratelimit, quota, fusion, cache]
const names = demos.map(({ name }) => name)

/** Shows a promise of the service with real requests to a service of its own (contract 33.11). */
export const demo: Command = {
  name: 'demo',
  summary: `Show a feature at work: ${names.join(', ')}. Uses simulated providers, and does not use your configuration or data.`,
  arguments: ['[NAME]'],
  options: [
    {
      name: 'keep',
      summary: 'After the demo, keep its service running until Ctrl-C, so that you can repeat the requests.',
    },
  ],
  example: 'demo failover',
  async run(invocation) {
    const [name] = invocation.line.positionals
    if (name === undefined) return listed()
    const found = demos.find((known) => known.name === name)
    if (found === undefined) throw unknownDemo(name, invocation)
    return runDemo(invocation, found)
  },
}

function listed(): Result {
  return {
    text: writeTable([['DEMO', 'WHAT IT SHOWS'], ...demos.map(({ name, summary }) => [name, summary])]),
    json: demos.map(({ name, summary, promise }) => ({ name, summary, promise })),
    talk: ['Run one: npx svc-router demo failover'],
  }
}

function unknownDemo(name: string, invocation: Invocation): CommandError {
  const near = nearest(name, names)
  const all = `choose one of: ${names.join(', ')}`
  return new CommandError(
    exitCodes.usage,
    'there is no such demo',
    near === undefined ? all : `did you mean "${invocation.command(`demo ${near}`)}"? ${all}`,
  )
}
