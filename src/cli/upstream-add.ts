import { addUpstream } from '../accounts/upstreams.ts'
import { suggest } from '../config/check-shape.ts'
import { findPreset, presetNames } from '../config/presets.ts'
import { isProviderUrl } from '../config/settings.ts'
import { holdsSecret } from '../config/secret-shapes.ts'
import { regionShape } from '../domain/cloud-credentials.ts'
import { formatIds, type FormatId } from '../domain/format-id.ts'
import { Secret } from '../domain/secret.ts'
import { checkCredential, fillBaseUrl, needsRegion, vendorUrl, type Place } from '../providers/place.ts'
import { spokenBy, type Vendor } from '../providers/registry.ts'
import { accountOption, type Command, type Invocation } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'

const maxModelCharacters = 200

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
    const { preset, region, ...draft } = readDraft(invocation, provider)
    const given = await readCredential(invocation, provider)
    const checked = given === undefined ? undefined : checkCredential(preset.signing, given.reveal())
    if (checked !== undefined && 'problem' in checked)
      throw new CommandError(exitCodes.usage, `the credential ${checked.problem}`, checked.fix)
    const credential = checked === undefined ? undefined : new Secret(checked.text)
    const baseUrl = placeBaseUrl(preset, draft, { ...checked?.place, ...(region !== undefined && { region }) })
    return invocation.withStore(async ({ config, plane, account }) => {
      const owner = await account()
      const upstream = await addUpstream(
        plane,
        owner.id,
        { ...draft, provider, baseUrl, credential },
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

function readDraft(invocation: Invocation, provider: string) {
  const { line } = invocation
  const wrong = (what: string, fix: string): CommandError => new CommandError(exitCodes.usage, what, fix)
  const preset = findPreset(provider)
  if (preset === undefined) throw wrong('there is no provider of that name', suggest(provider, presetNames))
  const model = line.option('model')
  if (model === undefined || model.length > maxModelCharacters) {
    throw wrong(
      `--model is missing or longer than ${maxModelCharacters} characters`,
      invocation.command(`upstream add ${provider} --model ${preset.exampleModel}`),
    )
  }
  const baseUrl = line.option('base-url') ?? null
  if (baseUrl === null && preset.baseUrl === null)
    throw wrong(`${preset.name} needs --base-url`, '--base-url https://…')
  if (baseUrl !== null && !isProviderUrl(baseUrl))
    throw wrong('--base-url must be an http or https URL without user name and fragment', '--base-url https://…')
  if (baseUrl !== null && holdsSecret(baseUrl))
    throw wrong(
      '--base-url holds something that looks like a credential, and it is stored and shown as it is',
      'take it out of the URL and give it with --credential-env NAME',
    )
  const named = line.option('format')
  const format = formatIds.find((known) => known === named)
  if (named !== undefined && format === undefined)
    throw wrong(`--format must be ${formatIds.join(' or ')}`, '--format openai-chat')
  const authHeader = line.option('auth-header')?.toLowerCase() ?? null
  if (authHeader !== null && !/^[a-z0-9-]{1,64}$/.test(authHeader))
    throw wrong('--auth-header must be the name of a header', '--auth-header authorization')
  const region = line.option('region')
  if (region !== undefined && !regionShape.test(region))
    throw wrong('--region must be the name of a region', '--region us-east-1')
  return { preset, model, baseUrl, format: format ?? null, authHeader, region }
}

/** With its region and project, where the preset's has them; null where the preset's own is used as it stands. */
function placeBaseUrl(
  preset: Vendor,
  { baseUrl, format }: { readonly baseUrl: string | null; readonly format: FormatId | null },
  place: Place,
): string | null {
  const template = baseUrl ?? vendorUrl({ ...preset, ...spokenBy(preset, format ?? undefined) }, place.region)
  if (template === null || !template.includes('{')) return baseUrl
  if (needsRegion(template) && place.region === undefined)
    throw new CommandError(
      exitCodes.usage,
      `${preset.name} needs a region`,
      'add --region us-east-1, or the one you use',
    )
  return fillBaseUrl(template, place)
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
