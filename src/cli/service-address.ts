import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../config/problems.ts'
import { defaultKeyVariable, type ClientConfig } from '../domain/client-config.ts'
import { frontierId } from '../domain/profiles.ts'
import { holdsSecret } from '../domain/secret-shapes.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'
import { quoteForShell } from '../runtime/quote-for-shell.ts'
import { Secret } from '../runtime/secret.ts'
import type { Option } from './command-line.ts'
import type { Invocation } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'
import { firstKeyName } from './process/first-key-file.ts'
import { findRunning } from './process/running-file.ts'

const urlVariable = 'SVC_ROUTER_BASE_URL'
const maxModelCharacters = 200
const maxUrlCharacters = 2_000

/** Options of the commands that act as a client of a service. */
export const addressOptions: readonly Option[] = [
  {
    name: 'url',
    value: 'URL',
    summary: `The base URL. Default: ${urlVariable}, or the base URL of the service on this machine.`,
  },
  {
    name: 'key-variable',
    value: 'NAME',
    summary: `The environment variable with the API key. Default ${defaultKeyVariable}.`,
  },
  { name: 'model', value: 'PROFILE', summary: `The profile. Default ${frontierId}.` },
]

/** The same for commands that send requests with the key. */
export const callerOptions: readonly Option[] = addressOptions.map((option) =>
  option.name === 'key-variable'
    ? {
        ...option,
        summary: `${option.summary} If it is not set, and the service runs on this machine, the first key of the service is used.`,
      }
    : option,
)

/** The address of a service, as its client sees it. */
export interface ServiceAddress {
  /** As given, without trailing slashes. */
  readonly baseUrl: string
  /** The data folder, if the service runs on this machine. Its first key may then be used. */
  readonly ownDataDir: string | undefined
}

/**
 * Finds the service: from `--url` or its variable, or the one running or configured here. @throws CommandError,
 * ConfigError
 */
export function findService(invocation: Invocation): ServiceAddress {
  const { line, terminal } = invocation
  const variable = terminal.env[urlVariable]?.trim() ?? ''
  const named = line.option('url') ?? (variable === '' ? undefined : variable)
  if (named === undefined) return ownService(invocation)
  const where = line.option('url') === undefined ? urlVariable : '--url'
  const baseUrl = readUrl(named, where)
  const own = ownServiceIfAny(invocation)
  // Compare only host and port. With the wrong scheme no request succeeds, and doctor reports the scheme.
  const isOwn = own !== undefined && new URL(own.baseUrl).host === new URL(baseUrl).host
  return { baseUrl, ownDataDir: isOwn ? own.ownDataDir : undefined }
}

/** The base URL that clients need: ending in `/v1`. */
function completeBaseUrl(given: string): string {
  const url = new URL(given)
  if (url.pathname === '/') return `${url.origin}/v1`
  const end = given.indexOf('/v1/')
  return end < 0 ? given : given.slice(0, end + '/v1'.length)
}

/** Reads the client configuration from the command line. @throws CommandError */
export function readClientConfig(invocation: Invocation, { baseUrl, ownDataDir }: ServiceAddress): ClientConfig {
  const keyVariable = readKeyVariable(invocation)
  const keyHint =
    ownDataDir === undefined
      ? `Set ${keyVariable} to your key for ${new URL(baseUrl).origin}.`
      : 'Your first key is in the file first-key in the data folder of svc-router.'
  return { baseUrl: completeBaseUrl(baseUrl), keyVariable, keyHint, model: readModel(invocation) }
}

/** @throws CommandError if it is not a variable name. The error does not repeat the value, because it may be a key. */
export function readKeyVariable({ line }: Invocation): string {
  const name = line.option('key-variable') ?? defaultKeyVariable
  // An API key could pass for a variable name.
  if (/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(name) && !holdsSecret(name)) return name
  throw new CommandError(
    exitCodes.usage,
    '--key-variable takes the name of an environment variable, not the key itself',
    `--key-variable ${defaultKeyVariable}`,
  )
}

/** @throws CommandError if it is not a valid profile name */
export function readModel({ line }: Invocation): string {
  const model = line.option('model') ?? frontierId
  if (model.length <= maxModelCharacters && /^[\w.:/@+-]+$/.test(model) && !holdsSecret(model)) return model
  throw new CommandError(exitCodes.usage, '--model is not a valid profile name', `--model ${frontierId}`)
}

/** The user's key: from its variable or, if the service runs on this machine, the first key. */
export function findKey(
  { terminal }: Invocation,
  keyVariable: string,
  { ownDataDir }: ServiceAddress,
): Secret | undefined {
  const value = terminal.env[keyVariable] ?? ''
  if (value !== '') return new Secret(value)
  return ownDataDir === undefined ? undefined : readFirstKey(ownDataDir)
}

/** The shell command that sets the key's variable: to the first key or, if there is none, to a new one. */
export function keyCommand(invocation: Invocation, { ownDataDir }: ServiceAddress, keyVariable: string): string {
  if (ownDataDir === undefined) return `export ${keyVariable}=…`
  const printKey =
    readFirstKey(ownDataDir) === undefined
      ? invocation.command('keys create')
      : `cat ${quoteForShell(join(ownDataDir, firstKeyName))}`
  return `export ${keyVariable}=$(${printKey})`
}

function readFirstKey(dataDir: string): Secret | undefined {
  try {
    const key = readFileSync(join(dataDir, firstKeyName), 'utf8').trim()
    return key === '' ? undefined : new Secret(key)
  } catch {
    // The file is missing, as in production, or belongs to another user. Callers say how to get a key.
    return undefined
  }
}

function ownService(invocation: Invocation): ServiceAddress {
  const config = invocation.load('pretend')
  return { baseUrl: findRunning(config.dataDir)?.baseUrl ?? config.baseUrl, ownDataDir: config.dataDir }
}

/** Like `ownService`, but undefined for an invalid configuration, which does not matter if the service was named. */
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
      `${where} must be an http or https URL without a user name or credential`,
      '--url https://HOST/v1',
    )
  return withoutEndSlashes(`${url.origin}${url.pathname}`)
}
