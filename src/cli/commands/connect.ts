import { clientRecipes, type ClientRecipe } from '../../domain/client-recipes.ts'
import { nearest } from '../../domain/profiles.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { addressOptions, findService, keyCommand, readClientConfig } from '../service-address.ts'
import { writeTable } from '../terminal/table.ts'

const names = clientRecipes.map(({ name }) => name)

export const connect: Command = {
  name: 'connect',
  summary: `Print a ready-to-use configuration for a client: ${names.join(', ')}.`,
  arguments: ['[CLIENT]'],
  options: addressOptions,
  example: 'connect codex > ~/.codex/svc-router.config.toml',
  async run(invocation) {
    const [name] = invocation.line.positionals
    if (name === undefined) return listed(invocation)
    const connection = clientRecipes.find((known) => known.name === name)
    if (connection === undefined) throw unknownClient(name, invocation)
    const address = findService(invocation)
    const wiring = readClientConfig(invocation, address)
    const configuration = connection.write(wiring)
    const { next, language } = connection
    const place = connection.place.replace('{again}', invocation.command(`connect ${connection.name}`))
    const talk = [place]
    if (wiring.baseUrl !== address.baseUrl) talk.push(`The base URL is ${wiring.baseUrl}, because it must end in /v1.`)
    if ((invocation.terminal.env[wiring.keyVariable] ?? '') === '')
      talk.push(`${wiring.keyVariable} is not set here. Set it: ${keyCommand(address, wiring.keyVariable)}`)
    talk.push(`Next: ${next}. If that fails: ${invocation.command('doctor')}`)
    return {
      text: configuration,
      json: {
        client: connection.name,
        base_url: wiring.baseUrl,
        key_variable: wiring.keyVariable,
        model: wiring.model,
        language,
        configuration,
        place,
        next,
      },
      talk,
    }
  },
}

function listed(invocation: Invocation) {
  const rows = clientRecipes.map(({ name, title, language }: ClientRecipe) => [name, title, language])
  return {
    text: writeTable([['CLIENT', 'NAME', 'FORMAT'], ...rows]),
    json: clientRecipes.map(({ name, title, language }) => ({ name, title, language })),
    talk: [`Next: ${invocation.command('connect codex')}`],
  }
}

function unknownClient(name: string, invocation: Invocation): CommandError {
  const near = nearest(name, names)
  return new CommandError(
    exitCodes.usage,
    'there is no client with that name',
    near === undefined ? `one of: ${names.join(', ')}` : `did you mean "${invocation.command(`connect ${near}`)}"?`,
  )
}
