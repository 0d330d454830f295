import { withoutEndSlashes } from '../domain/end-slashes.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/problems.ts'
import { holdsSecret } from '../domain/secret-shapes.ts'
import { frontierId } from '../domain/profiles.ts'
import { defaultKeyVariable, type Wiring } from '../domain/wiring.ts'
import { Secret } from '../domain/secret.ts'
import type { Option } from './command-line.ts'
import { quoteForShell } from '../domain/quote-for-shell.ts'
import type { Invocation } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'
import { firstKeyName } from './first-key-file.ts'
import { findRunning } from './running-file.ts'

const urlVariable = 'SVC_ROUTER_BASE_URL'
const maxModelCharacters = 200
const maxUrlCharacters = 2_000

/** What every command takes that deals with a service as its client. */
export const addressOptions: readonly Option[] = [
  {
    name: 'url',
    value: 'URL',
    summary: `The base URL. Default: ${urlVariable}, or the service that runs or is configured here.`,
  },
  {
    name: 'key-variable',
    value: 'NAME',
    summary: `The environment variable that holds the key. Default ${defaultKeyVariable}.`,
  },
  { name: 'model', value: 'PROFILE', summary: `The route profile. Default ${frontierId}.` },
]

/** A service as its client sees it. */
export interface ServiceAddress {
  /** As it was given, without slashes at its end. */
  readonly baseUrl: string
  /** The data folder, where the service is the one of this machine; its first key is ours to use then. */
  readonly ownDataDir: string | undefined
}

/** The service that is meant: named by `--url` or its variable, or the one that runs or is configured here. @throws CommandError, ConfigError */
export function findService(invocation: Invocation): ServiceAddress {
  const { line, terminal } = invocation
  const variable = terminal.env[urlVariable]?.trim() ?? ''
  const named = line.option('url') ?? (variable === '' ? undefined : variable)
  if (named === undefined) return ownService(invocation)
  const where = line.option('url') === undefined ? urlVariable : '--url'
  const baseUrl = readUrl(named, where)
  const own = ownServiceIfAny(invocation)
  // The same host and port: with the other scheme nothing can be sent there, and it is said that it is the wrong one.
  const isOwn = own !== undefined && new URL(own.baseUrl).host === new URL(baseUrl).host
  return { baseUrl, ownDataDir: isOwn ? own.ownDataDir : undefined }
}

/** The base URL as clients want it: below `/v1`, and nothing behind that. */
function completeBaseUrl(given: string): string {
  const url = new URL(given)
  if (url.pathname === '/') return `${url.origin}/v1`
  const end = given.indexOf('/v1/')
  return end < 0 ? given : given.slice(0, end + '/v1'.length)
}

/** The wiring that a line asks for. @throws CommandError */
export function readWiring(invocation: Invocation, { baseUrl, ownDataDir }: ServiceAddress): Wiring {
  const keyVariable = readKeyVariable(invocation)
  const keyHint =
    ownDataDir === undefined
      ? `Set ${keyVariable} to your key for ${new URL(baseUrl).origin}.`
      : 'Your first key is in the file first-key in the data folder of svc-router.'
  return { baseUrl: completeBaseUrl(baseUrl), keyVariable, keyHint, model: readModel(invocation) }
}

/** @throws CommandError where it is no name of a variable; what was given is not repeated, because it may be a key */
export function readKeyVariable({ line }: Invocation): string {
  const name = line.option('key-variable') ?? defaultKeyVariable
  // A key of ours could be the name of a variable by its characters.
  if (/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(name) && !holdsSecret(name)) return name
  throw new CommandError(
    exitCodes.usage,
    '--key-variable takes the name of an environment variable, not the key',
    `--key-variable ${defaultKeyVariable}`,
  )
}

/** @throws CommandError where no profile can have that name */
export function readModel({ line }: Invocation): string {
  const model = line.option('model') ?? frontierId
  if (model.length <= maxModelCharacters && /^[\w.:/@+-]+$/.test(model) && !holdsSecret(model)) return model
  throw new CommandError(exitCodes.usage, 'no profile can have the name in --model', `--model ${frontierId}`)
}

/** The key of whoever runs the command: from its variable, else the first key where the service is this machine's. */
export function findKey(
  { terminal }: Invocation,
  keyVariable: string,
  { ownDataDir }: ServiceAddress,
): Secret | undefined {
  const value = terminal.env[keyVariable] ?? ''
  if (value !== '') return new Secret(value)
  if (ownDataDir === undefined) return undefined
  try {
    const kept = readFileSync(join(ownDataDir, firstKeyName), 'utf8').trim()
    return kept === '' ? undefined : new Secret(kept)
  } catch {
    // There is none, or it is another user's: either way there is no key here, and it is said how to get one.
    return undefined
  }
}

/** The command that puts a key into its variable, for a service of this machine or any other. */
export function keyCommand({ ownDataDir }: ServiceAddress, keyVariable: string): string {
  if (ownDataDir === undefined) return `export ${keyVariable}=…`
  return `export ${keyVariable}=$(cat ${quoteForShell(join(ownDataDir, firstKeyName))})`
}

function ownService(invocation: Invocation): ServiceAddress {
  const config = invocation.load('pretend')
  return { baseUrl: findRunning(config.dataDir)?.baseUrl ?? config.baseUrl, ownDataDir: config.dataDir }
}

/** A configuration that cannot be used is no obstacle where the service is named. */
function ownServiceIfAny(invocation: Invocation): ServiceAddress | undefined {
  try {
    return ownService(invocation)
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  }
}

function readUrl(text: string, where: string): string {
  const url = URL.canParse(text) && text.length <= maxUrlCharacters ? new URL(text) : undefined
  const isUsable = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isUsable || holdsSecret(url.pathname))
    throw new CommandError(
      exitCodes.usage,
      `${where} must be an http or https URL without a user name or a credential`,
      '--url https://HOST/v1',
    )
  return withoutEndSlashes(`${url.origin}${url.pathname}`)
}
