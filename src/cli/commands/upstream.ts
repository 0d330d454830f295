import { AccountsError } from '../../accounts/accounts-error.ts'
import { prepareUpstream, saveUpstream, removeUpstream } from '../../accounts/upstreams.ts'
import { suggest } from '../../config/check-shape.ts'
import { findPreset, presetNames } from '../../config/presets.ts'
import {
  assertEncrypted,
  maxModelCharacters,
  readUpstream,
  UpstreamUnreadable,
  withCredential,
  type UpstreamProblem,
} from '../../config/read-upstream.ts'
import { maxHeaders, timeoutSettings } from '../../config/upstream-extras.ts'
import { formatIds } from '../../domain/format-id.ts'
import { describeUpstreamTest } from '../../domain/upstream-test-text.ts'
import type { UpstreamTest, AttemptOutcome } from '../../domain/upstream.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import { terminalLine } from '../../runtime/safe-text.ts'
import { Secret } from '../../runtime/secret.ts'
import { accountOption, type Command, type Invocation } from '../command.ts'
import { CommandError, exitCodes, type ExitCode } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { oneOf } from '../value-shapes.ts'

export const upstreamAdd: Command = {
  name: 'upstream add',
  summary: `Connect a provider with your own credential, which is stored encrypted. Providers: ${presetNames.join(', ')}.`,
  arguments: ['PROVIDER'],
  options: [
    {
      name: 'model',
      value: 'MODEL',
      summary: `The provider's name for the model, at most ${maxModelCharacters} characters. Required.`,
    },
    {
      name: 'credential-env',
      value: 'NAME',
      summary: 'The environment variable with the credential. Default: read the credential from piped standard input.',
    },
    {
      name: 'base-url',
      value: 'URL',
      summary: "The base URL of the API. Default: the provider's. Required for custom and azure-openai.",
    },
    {
      name: 'region',
      value: 'REGION',
      summary: 'The region. Required for bedrock, unless the credential names it. Optional for vertex.',
    },
    {
      name: 'format',
      value: 'FORMAT',
      shape: oneOf(formatIds),
      summary: `The API format: ${formatIds.join(', ')}. Default: the provider's.`,
    },
    {
      name: 'auth-header',
      value: 'HEADER',
      summary:
        'The header that carries the credential. With "authorization", it is sent as a Bearer token. Default: the provider\'s.',
    },
    ...timeoutSettings.map(({ name, limits }) => ({
      name: timeoutOption(name),
      value: 'DURATION',
      summary: `${limits} For example 90s, at most 24h.`,
    })),
    {
      name: 'header',
      value: 'NAME=VALUE',
      repeats: true,
      summary: `An extra header for every request. Must not contain a credential. Can be repeated, up to ${maxHeaders} times.`,
    },
    {
      name: 'no-credential',
      summary:
        'Connect without a credential, for a server that needs none. Standard input is then not read. Has no effect with --credential-env.',
    },
    { name: 'no-test', summary: 'Save the provider without sending a test request.' },
    accountOption,
  ],
  example: 'upstream add openai --model gpt-5.1 --credential-env OPENAI_API_KEY',
  async run(invocation) {
    const provider = invocation.argument(
      0,
      'the provider',
      `upstream add PROVIDER --model MODEL; providers: ${presetNames.join(', ')}`,
    )
    const { line, ports } = invocation
    const read = <Value>(work: () => Value): Value => inOurWords(invocation, provider, work)
    const checked = read(() =>
      readUpstream({
        provider,
        model: line.option('model'),
        baseUrl: line.option('base-url'),
        region: line.option('region'),
        format: line.option('format'),
        authHeader: line.option('auth-header'),
        timeouts: Object.fromEntries(timeoutSettings.map(({ name }) => [name, line.option(timeoutOption(name))])),
        headers: line.list('header'),
      }),
    )
    const given = await readCredential(invocation, provider)
    const { baseUrl, credential } = read(() => withCredential(checked, given))
    const { model, format, authHeader, timeouts, headers } = checked
    return invocation.withStore(async ({ config, accountsDeps, account }) => {
      read(() => assertEncrypted(config.mode, checked.preset, baseUrl, credential))
      const owner = await account()
      const draft = { provider, model, format, authHeader, baseUrl, credential, timeouts, headers }
      const upstream = await prepareUpstream(accountsDeps, owner.id, draft, ports.sealer(config))
      const skipsTest = line.flag('no-test')
      const test = skipsTest ? undefined : await ports.testUpstream(config, { ...upstream, position: 0 })
      if (test !== undefined && test.outcome !== 'answered') throw failedTest(test)
      await saveUpstream(accountsDeps, upstream)
      const { sealedCredential: _, ...shown } = upstream
      return {
        text: upstream.id,
        json: { ...shown, test },
        talk: [
          `${provider} ${upstream.model} is connected to account ${owner.name} and serves only that account.`,
          test === undefined
            ? `It now receives requests but was not tested. Test it: ${invocation.command(`upstream test ${upstream.id}`)}`
            : `It answered a test request in ${Math.round(test.ms)} ms. Next: ${invocation.command('upstream list')}`,
        ],
      }
    })
  },
}

/** Nothing is saved: a provider that does not work would take the place of those that do. */
function failedTest(test: UpstreamTest): CommandError {
  const { what, next } = describeUpstreamTest(test)
  const said = test.reason === undefined ? '' : ` It says: ${terminalLine(test.reason)}`
  const status = test.status === undefined ? '' : ` (HTTP ${test.status})`
  return new CommandError(
    exitCodeOf([test.outcome]),
    `the provider was not saved, because the test request failed. ${what.replace(/\.$/, '')}${status}.${said}`,
    `${next} To save it without a test, add --no-test`,
  )
}

function timeoutOption(name: (typeof timeoutSettings)[number]['name']): string {
  return `${name.replace('_', '-')}-timeout`
}

/** Runs `work` and describes an invalid upstream in terms of this command's options. */
function inOurWords<Value>(invocation: Invocation, provider: string, work: () => Value): Value {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof UpstreamUnreadable)) throw error
    const [what, fix] = sentenceFor(invocation, provider, error)
    throw new CommandError(exitCodes.usage, what, fix)
  }
}

function sentenceFor(
  invocation: Invocation,
  provider: string,
  { problem, preset, detail }: UpstreamUnreadable,
): readonly [what: string, fix: string] {
  const name = preset?.name ?? provider
  const add = `upstream add ${provider} --model ${preset?.exampleModel ?? 'MODEL'}`
  const { problem: wrong, fix } = detail ?? { problem: 'is invalid', fix: 'check it and try again' }
  const timeout = `--${wrong.replace('_', '-')}-timeout`
  const sentences: Readonly<Record<UpstreamProblem, readonly [string, string]>> = {
    provider_unknown: ['there is no provider with that name', suggest(provider, presetNames)],
    model_missing: [`--model is missing or longer than ${maxModelCharacters} characters`, invocation.command(add)],
    base_url_missing: [`${name} needs --base-url`, '--base-url https://…'],
    base_url_malformed: [
      '--base-url must be an http or https URL without a user name or fragment',
      '--base-url https://…',
    ],
    base_url_secret: [
      '--base-url contains what looks like a credential, and URLs are stored and displayed in full',
      'remove it from the URL and pass it with --credential-env NAME',
    ],
    base_url_plain: ['in production, credentials are sent only over https', '--base-url https://…'],
    format_unknown: [`--format must be ${formatIds.join(' or ')}`, '--format openai-chat'],
    auth_header_malformed: [
      '--auth-header must be the name of a header that can carry a credential',
      '--auth-header authorization',
    ],
    region_malformed: ['--region must be the name of a region', '--region us-east-1'],
    region_missing: [`${name} needs a region`, 'add your region, for example --region us-east-1'],
    credential_missing: [
      `${name} needs a credential`,
      invocation.command(`${add} --credential-env ${preset?.keyVariable ?? 'NAME'}`),
    ],
    credential_malformed: [`the credential ${wrong}`, fix],
    credential_unused: [`${name} does not use a credential`, 'omit it, or add --no-credential'],
    timeout_malformed: [`${timeout} takes ${fix}`, `${timeout} 90s`],
    header_malformed: [`--header is invalid: ${wrong}`, `--header ${fix}`],
  }
  return sentences[problem]
}

/** Reads the credential from the named variable or from piped standard input. */
async function readCredential(invocation: Invocation, provider: string): Promise<Secret | undefined> {
  const { line, terminal } = invocation
  const preset = findPreset(provider)
  const variable = line.option('credential-env')
  if (variable !== undefined) {
    const value = terminal.env[variable]?.trim()
    if (value !== undefined && value !== '') return new Secret(value)
    throw new CommandError(
      exitCodes.usage,
      'the environment variable that --credential-env names is not set',
      'set it in this shell, or specify another variable by its name: --credential-env OPENAI_API_KEY',
    )
  }
  // Piped input is never ignored. If no credential is required, empty or closed input means there is none.
  const isRequired = preset?.credential === 'required'
  if (line.flag('no-credential') || (!isRequired && terminal.stdinIsTty)) return undefined
  const example = invocation.command(
    `upstream add ${provider} --model ${preset?.exampleModel ?? 'MODEL'} --credential-env ${preset?.keyVariable ?? 'NAME'}`,
  )
  if (terminal.stdinIsTty)
    throw new CommandError(exitCodes.usage, `${preset?.name ?? provider} needs a credential`, example)
  const text = (await terminal.readStdin()).trim()
  if (text === '' && !isRequired) return undefined
  if (text === '') throw new CommandError(exitCodes.usage, 'standard input is empty; expected a credential', example)
  return new Secret(text)
}

const authOutcomes: readonly AttemptOutcome[] = ['rejected_credentials']
const unreachableOutcomes: readonly AttemptOutcome[] = ['unreachable', 'reset', 'timeout']

export const upstreamTest: Command = {
  name: 'upstream test',
  summary: 'Send a small test request to one connected provider, or to all of them.',
  arguments: ['[ID]'],
  options: [accountOption],
  example: 'upstream test',
  run: (invocation) =>
    invocation.withStore(async ({ config, accountsDeps, account }) => {
      const [id] = invocation.line.positionals
      const all = await accountsDeps.store.listUpstreams((await account()).id)
      const chosen = id === undefined ? all : all.filter((upstream) => upstream.id === id)
      if (id !== undefined && chosen.length === 0) throw new AccountsError('upstream_unknown')
      if (chosen.length === 0)
        throw new CommandError(
          exitCodes.failure,
          'no provider is connected',
          invocation.command('upstream add PROVIDER --model MODEL'),
        )
      const results = []
      for (const upstream of chosen) {
        const test = await invocation.ports.testUpstream(config, upstream)
        results.push({ id: upstream.id, provider: upstream.provider, model: upstream.model, ...test })
      }
      const rows = results.map((result) => [
        result.id,
        result.provider,
        result.model,
        result.outcome,
        String(result.status ?? ''),
        `${Math.round(result.ms)} ms`,
        result.reason ?? '',
      ])
      const exitCode = exitCodeOf(results.map(({ outcome }) => outcome))
      return {
        text: writeTable([['ID', 'PROVIDER', 'MODEL', 'OUTCOME', 'STATUS', 'TIME', 'PROVIDER SAYS'], ...rows]),
        json: results,
        talk: [advice(results, (text) => invocation.command(text))],
        exitCode,
      }
    }),
}

/** The exit code for these test outcomes; the worst outcome decides. */
function exitCodeOf(outcomes: readonly AttemptOutcome[]): ExitCode {
  const failed = outcomes.filter((outcome) => outcome !== 'answered')
  if (failed.length === 0) return exitCodes.ok
  if (failed.some((outcome) => authOutcomes.includes(outcome))) return exitCodes.auth
  return failed.every((outcome) => unreachableOutcomes.includes(outcome)) ? exitCodes.unreachable : exitCodes.failure
}

/** What to do about the worst result. */
function advice(
  results: readonly (UpstreamTest & { readonly id: string })[],
  command: (text: string) => string,
): string {
  const failed = results.filter(({ outcome }) => outcome !== 'answered')
  const worst = failed.find(({ outcome }) => authOutcomes.includes(outcome)) ?? failed[0]
  if (worst === undefined)
    return `${results.length === 1 ? 'The provider' : 'Each provider'} answered. Next: ${command('requests')}`
  if (authOutcomes.includes(worst.outcome))
    return `The provider ${worst.id} rejected the credential, or your credit there is used up. If it is, add credit. Otherwise, next: ${command(`upstream remove ${worst.id} --yes`)}, then add it again with a working credential.`
  const { what, next } = describeUpstreamTest(worst)
  return `${worst.id}: ${what} ${next} See its settings: ${command('upstream list')}`
}

export const upstreamList: Command = {
  name: 'upstream list',
  summary:
    'List the providers that an account has connected, in the order in which they were added. By default, svc-router/frontier tries them in this order.',
  arguments: [],
  options: [accountOption],
  example: 'upstream list',
  run: (invocation) =>
    invocation.withStore(async ({ accountsDeps, account }) => {
      const { id } = await account()
      const upstreams = (await accountsDeps.store.listUpstreams(id)).map(({ sealedCredential, ...shown }) => ({
        ...shown,
        hasCredential: sealedCredential !== null,
      }))
      const rows = upstreams.map((upstream) => [
        upstream.id,
        upstream.provider,
        upstream.model,
        upstream.hasCredential ? `…${upstream.credentialHint ?? ''}` : 'none',
        upstream.baseUrl ?? 'preset',
        writeTime(upstream.createdAtMs),
      ])
      return {
        text:
          upstreams.length === 0
            ? ''
            : writeTable([['ID', 'PROVIDER', 'MODEL', 'CREDENTIAL', 'URL', 'ADDED'], ...rows]),
        json: upstreams,
        talk: [
          `Next: ${invocation.command(upstreams.length === 0 ? 'upstream add PROVIDER --model MODEL' : 'upstream test')}`,
        ],
      }
    }),
}

/** Cannot be undone, so it asks for `--yes` (contract 33.8). */
export const upstreamRemove: Command = {
  name: 'upstream remove',
  summary: 'Disconnect a provider and delete its credential.',
  arguments: ['ID'],
  options: [{ name: 'yes', summary: 'Required: the credential cannot be restored afterwards.' }, accountOption],
  example: 'upstream remove ID --yes',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the provider', 'upstream list')
    if (!invocation.line.flag('yes')) {
      throw new CommandError(
        exitCodes.usage,
        'removing a provider deletes its credential',
        `to confirm: ${invocation.command(`upstream remove ${quoteForShell(id.slice(0, 64))} --yes`)}`,
      )
    }
    return invocation.withStore(async ({ accountsDeps, account }) => {
      await removeUpstream(accountsDeps, (await account()).id, id)
      return { text: id, json: { id, removed: true }, talk: [`Next: ${invocation.command('upstream list')}`] }
    })
  },
}
