import { ConfigError } from '../config/problems.ts'
import { isObject, objectOf, parseObject, textOf, type JsonObject } from '../domain/json.ts'
import type { Option } from './command-line.ts'
import type { Invocation } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'

const usualVariable = 'SVC_ROUTER_ADMIN_TOKEN'
const timeoutMs = 60_000
/** More than any state within the bounds of a service. */
const maxAnswerBytes = 64 * 1024 ** 2

/** Options of the commands that can work on a service elsewhere. */
export const remoteOptions: readonly Option[] = [
  {
    name: 'url',
    value: 'URL',
    summary:
      'The URL of the web app of a running service, with https unless it runs on this machine. The command then uses its admin API, instead of the data folder or database.',
  },
  {
    name: 'token-variable',
    value: 'NAME',
    summary: `With --url: the environment variable with the token. Default ${usualVariable}.`,
  },
]

/** Sends one request to the admin API. */
export type AskAdmin = (method: 'GET' | 'POST', path: string, body?: JsonObject) => Promise<JsonObject>

/** The admin API that `--url` names; undefined without it. @throws CommandError if the URL or the token is unusable */
export function adminApiOf({ line, terminal }: Invocation, file: string): AskAdmin | undefined {
  const url = line.option('url')
  if (url === undefined) return undefined
  if (!isSafe(url))
    throw new CommandError(
      exitCodes.usage,
      '--url must use https, or http on this machine, because the token is sent to it',
      'for example --url https://app.example.com',
    )
  const variable = line.option('token-variable') ?? usualVariable
  const token = terminal.env[variable]?.trim() ?? ''
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new CommandError(
      exitCodes.auth,
      `the environment variable ${variable} does not contain a token`,
      `create one where the service runs: svc-router admin-tokens create NAME (for apply, add --scope write); then export ${variable}=…`,
    )
  const base = new URL(url).origin
  return (method, path, body) => ask(`${base}/admin/v1${path}`, { method, token, body, file })
}

interface Asked {
  readonly method: string
  readonly token: string
  readonly body: JsonObject | undefined
  readonly file: string
}

async function ask(url: string, { method, token, body, file }: Asked): Promise<JsonObject> {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    // A redirect could take the token to another server.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch(() => {
    throw new CommandError(
      exitCodes.unreachable,
      `${new URL(url).origin} cannot be reached`,
      'check the URL and the network',
    )
  })
  const answer = parseObject(await readText(response))
  if (response.ok && answer !== undefined) return answer
  throw refusal(response.status, objectOf(answer?.['error']), file)
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxAnswerBytes) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** What the command reports for a refusal. */
function refusal(status: number, error: JsonObject, file: string): Error {
  const { message, code, problems } = error
  if (Array.isArray(problems) && problems.length > 0)
    return new ConfigError(
      file,
      problems.filter(isObject).map(({ path, message: what, fix }) => ({
        what: textOf(what),
        fix: textOf(fix),
        path: textOf(path),
        location: undefined,
        hide: false,
      })),
      'declaration',
    )
  if (typeof message !== 'string')
    return new CommandError(
      exitCodes.unreachable,
      `there is no admin API at that URL (status ${status})`,
      'use the URL of the web app, and set admin_api.enabled in the configuration of that service',
    )
  const [what = '', ...fix] = message.split(/(?<=\.) /)
  const exitCode =
    status === 401 || status === 403 ? exitCodes.auth : status >= 500 ? exitCodes.unreachable : exitCodes.failure
  return new CommandError(
    exitCode,
    `the service rejected the request: ${what.replace(/\.$/, '')}`,
    fix.join(' ') || `see ${textOf(code)}`,
  )
}

/** The token must not cross a network unencrypted. */
function isSafe(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  const isOwn = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return username + password === '' && (protocol === 'https:' || (protocol === 'http:' && isOwn))
}
