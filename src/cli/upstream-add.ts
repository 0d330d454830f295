import { addUpstream } from '../accounts/upstreams.ts'
import { suggest } from '../config/check-shape.ts'
import { findPreset, presetNames } from '../config/presets.ts'
import {
  maxModelCharacters,
  readUpstream,
  UpstreamUnreadable,
  withCredential,
  type UpstreamProblem,
} from '../config/read-upstream.ts'
import { formatIds } from '../domain/format-id.ts'
import { Secret } from '../domain/secret.ts'
import { accountOption, type Command, type Invocation } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'

export const upstreamAdd: Command = {
  name: 'upstream add',
  summary: 'Connect a provider with your own credential, sealed at rest.',
  arguments: ['PROVIDER'],
  options: [
    { name: 'model', value: 'MODEL', summary: 'The model, as the provider calls it. Required.' },
    {
      name: 'credential-env',
      value: 'NAME',
      summary: 'The environment variable with the credential. Without it, standard input is read.',
    },
    { name: 'base-url', value: 'URL', summary: "Replaces the preset's; required for custom and azure-openai." },
    { name: 'region', value: 'REGION', summary: 'Where the provider has regions: bedrock, vertex.' },
    { name: 'format', value: 'FORMAT', summary: `What it speaks: ${formatIds.join(' or ')}.` },
    {
      name: 'auth-header',
      value: 'HEADER',
      summary: 'The header that carries the credential; authorization sends Bearer.',
    },
    accountOption,
  ],
  example: 'upstream add openai --model gpt-5.1 --credential-env OPENAI_API_KEY',
  async run(invocation) {
    const provider = invocation.argument(
      0,
      'the provider',
      `upstream add PROVIDER --model MODEL; providers: ${presetNames.join(', ')}`,
    )
    const { line } = invocation
    const read = <Value>(work: () => Value): Value => inOurWords(invocation, provider, work)
    const checked = read(() =>
      readUpstream({
        provider,
        model: line.option('model'),
        baseUrl: line.option('base-url'),
        region: line.option('region'),
        format: line.option('format'),
        authHeader: line.option('auth-header'),
      }),
    )
    const given = await readCredential(invocation, provider)
    const { baseUrl, credential } = read(() => withCredential(checked, given))
    const { model, format, authHeader } = checked
    return invocation.withStore(async ({ config, plane, account }) => {
      const owner = await account()
      const upstream = await addUpstream(
        plane,
        owner.id,
        { provider, model, format, authHeader, baseUrl, credential },
        invocation.ports.sealer(config),
      )
      const { sealedCredential: _, ...shown } = upstream
      return {
        text: upstream.id,
        json: shown,
        talk: [
          `${provider} ${upstream.model} is connected to account ${owner.name} and serves that account alone.`,
          `Next, one small call to it: ${invocation.command(`upstream test ${upstream.id}`)}`,
        ],
      }
    })
  },
}

/** Does the work; what cannot be connected is said with the options of this command. */
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
  const sentences: Readonly<Record<UpstreamProblem, readonly [string, string]>> = {
    provider_unknown: ['there is no provider of that name', suggest(provider, presetNames)],
    model_missing: [`--model is missing or longer than ${maxModelCharacters} characters`, invocation.command(add)],
    base_url_missing: [`${name} needs --base-url`, '--base-url https://…'],
    base_url_malformed: [
      '--base-url must be an http or https URL without user name and fragment',
      '--base-url https://…',
    ],
    base_url_secret: [
      '--base-url holds something that looks like a credential, and it is stored and shown as it is',
      'take it out of the URL and give it with --credential-env NAME',
    ],
    format_unknown: [`--format must be ${formatIds.join(' or ')}`, '--format openai-chat'],
    auth_header_malformed: [
      '--auth-header must be the name of a header that can carry a credential',
      '--auth-header authorization',
    ],
    region_malformed: ['--region must be the name of a region', '--region us-east-1'],
    region_missing: [`${name} needs a region`, 'add --region us-east-1, or the one you use'],
    credential_missing: [
      `${name} needs a credential`,
      invocation.command(`${add} --credential-env ${preset?.keyVariable ?? 'NAME'}`),
    ],
    credential_malformed: [`the credential ${detail?.problem ?? 'is none'}`, detail?.fix ?? 'give another'],
  }
  return sentences[problem]
}

/** From the named variable, or from standard input; providers that can do without are given none. */
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
      'name the variable, not the credential: --credential-env OPENAI_API_KEY',
    )
  }
  if (preset?.credential !== 'required') return undefined
  const example = invocation.command(
    `upstream add ${provider} --model ${preset.exampleModel} --credential-env ${preset.keyVariable ?? 'NAME'}`,
  )
  if (terminal.stdinIsTty) throw new CommandError(exitCodes.usage, `${preset.name} needs a credential`, example)
  const text = (await terminal.readStdin()).trim()
  if (text === '') throw new CommandError(exitCodes.usage, 'no credential came on standard input', example)
  return new Secret(text)
}
