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
    const recipe = clientRecipes.find((known) => known.name === name)
    if (recipe === undefined) throw unknownClient(name, invocation)
    const address = findService(invocation)
    const clientConfig = readClientConfig(invocation, address)
    const configuration = recipe.write(clientConfig)
    const { next, language } = recipe
    const place = recipe.place.replace('{again}', invocation.command(`connect ${recipe.name}`))
    const talk = [place]
    if (clientConfig.baseUrl !== address.baseUrl)
      talk.push(`The base URL is ${clientConfig.baseUrl}, because it must end in /v1.`)
    if ((invocation.terminal.env[clientConfig.keyVariable] ?? '') === '')
      talk.push(
        `${clientConfig.keyVariable} is not set in this shell. Set it: ${keyCommand(invocation, address, clientConfig.keyVariable)}`,
      )
    talk.push(`Next: ${next}. If that fails: ${invocation.command('doctor')}`)
    return {
      text: configuration,
      json: {
        client: recipe.name,
        base_url: clientConfig.baseUrl,
        key_variable: clientConfig.keyVariable,
        model: clientConfig.model,
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
