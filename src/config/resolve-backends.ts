import { joinFacts, type Capabilities, type ModelFacts } from '../domain/model-facts.ts'
import type { BackendTimeouts } from '../gateway/ports.ts'
import { isPlainHttp } from '../providers/cloud-location.ts'
import { defaultTimeouts } from '../providers/timeouts.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'
import { suggest } from './check-shape.ts'
import type { BackendConfig, Mode, ProviderConfig } from './config.ts'
import type { Findings } from './findings.ts'
import { readDurationMs } from './measures.ts'
import { findPreset, presetNames, simulatedBackendIds, simulatedPreset } from './presets.ts'
import { resolveCredential } from './resolve-credential.ts'
import { resolveFacts, resolveModelFacts } from './resolve-facts.ts'
import type { ConfigFile } from './schema.ts'
import { readHeaders } from './upstream-extras.ts'

/** The capabilities of the simulated provider. Its sizes are left unknown. */
const simulatedCapabilities: Capabilities = {
  tools: true,
  image_input: true,
  file_input: true,
  structured_outputs: true,
  reasoning: true,
}

/** The defaults of a provider that is only a preset's name. */
const unsaid = {
  baseUrl: undefined,
  region: undefined,
  format: undefined,
  authHeader: undefined,
  headers: undefined,
  plainHttp: false,
} as const

/** The declared providers, and the presets that backends use by name. */
export function resolveProviders(file: ConfigFile, findings: Findings): Map<string, ProviderConfig> {
  const providers = new Map<string, ProviderConfig>()
  for (const [name, given] of Object.entries(file.providers ?? {})) {
    const preset = findPreset(given.preset)
    if (preset === undefined) {
      findings.add(
        ['providers', name, 'preset'],
        `there is no preset "${given.preset}"`,
        suggest(given.preset, presetNames),
      )
    } else if (preset.baseUrl === null && !findings.mentions(['providers', name, 'base_url'])) {
      findings.add(
        ['providers', name],
        `the preset "${given.preset}" needs a base_url`,
        `add "base_url: https://…" to ${name}`,
        'name',
      )
    }
    const headers = readHeaders(Object.entries(given.headers ?? {}).map(([header, value]) => `${header}: ${value}`))
    if (typeof headers === 'string')
      findings.add(['providers', name, 'headers'], headers, 'correct it, or leave it out')
    providers.set(name, {
      name,
      preset: given.preset,
      baseUrl: given.base_url === undefined ? undefined : withoutEndSlashes(given.base_url),
      region: given.region,
      format: given.format,
      authHeader: given.auth_header?.toLowerCase(),
      headers: given.headers === undefined || typeof headers === 'string' ? undefined : headers,
      plainHttp: given.plain_http ?? false,
    })
  }
  return providers
}

type GivenBackend = NonNullable<ConfigFile['backends']>[string]

/** Every backend with its credential, in the order of the file, simulated ones last. */
export function resolveBackends(
  file: ConfigFile,
  mode: Mode,
  providers: Map<string, ProviderConfig>,
  findings: Findings,
): BackendConfig[] {
  const models = resolveModelFacts(file)
  const backends = Object.entries(file.backends ?? {}).flatMap(([id, given]) => {
    const path = ['backends', id]
    if (simulatedBackendIds.includes(id)) {
      findings.add(path, `the name "${id}" belongs to a simulated backend`, 'choose another name', 'name')
    }
    const provider = findProvider(given.provider, providers, path, findings)
    return provider === undefined ? [] : [resolveBackend(id, given, { provider, models }, mode, findings)]
  })
  if (mode === 'production' && file.simulated === true) {
    findings.add(
      ['simulated'],
      'simulated providers are not allowed in production',
      'remove this line, or use "mode: local"',
    )
  }
  const simulate = mode === 'local' && (file.simulated ?? findings.names('backends').length === 0)
  return simulate ? [...backends, ...simulatedBackendIds.map(simulatedBackend)] : backends
}

function resolveBackend(
  id: string,
  given: GivenBackend,
  { provider, models }: { readonly provider: ProviderConfig; readonly models: ReadonlyMap<string, ModelFacts> },
  mode: Mode,
  findings: Findings,
): BackendConfig {
  checkCredential(id, provider, mode, given.managed ?? false, findings)
  const { credential_env: credentialEnv } = given
  if (mode === 'production' && credentialEnv !== undefined) checkEncrypted(provider, findings)
  const region = (given.region ?? provider.region)?.toLowerCase()
  const facts = {
    ...joinFacts(models.get(given.model), resolveFacts(given)),
    ...(region === undefined ? {} : { region }),
    ...(given.zero_retention === undefined ? {} : { zeroRetention: given.zero_retention }),
    ...(given.cache_lifetime === undefined ? {} : { cacheMs: readDurationMs(given.cache_lifetime)! }),
    ...(given.cache_domain === undefined ? {} : { cacheDomain: given.cache_domain }),
  }
  return {
    id,
    provider,
    model: given.model,
    credential: resolveCredential(id, credentialEnv, provider, findings),
    credentialEnv,
    account: given.account,
    managed: given.managed ?? false,
    failureDomain: given.failure_domain ?? provider.name,
    facts,
    embeddings: given.embeddings,
    addsMarks: given.cache?.marks !== 'off',
    timeouts: resolveTimeouts(given.timeouts, defaultTimeouts(facts.capabilities?.reasoning === true, provider.preset)),
    simulated: false,
  }
}

/** Who owns the credential, and whether one is required (contract 7.2, 31.5). */
function checkCredential(id: string, provider: ProviderConfig, mode: Mode, managed: boolean, findings: Findings): void {
  const path = ['backends', id]
  const namesCredential = findings.mentions([...path, 'credential_env'])
  const namesAccount = findings.mentions([...path, 'account'])
  if (findPreset(provider.preset)?.credential === 'required' && !namesCredential) {
    findings.add(
      path,
      `"${provider.name}" requires a credential, and ${id} has none`,
      'add "credential_env: NAME" with the name of the environment variable that contains it',
      'name',
    )
  }
  if (namesAccount && !namesCredential) {
    findings.add(
      [...path, 'account'],
      'a backend without a credential serves every account, so it cannot have "account"',
      'add "credential_env", or remove "account"',
      'name',
    )
  }
  if (managed && (namesAccount || !namesCredential)) {
    findings.add(
      [...path, 'managed'],
      "a managed backend uses the operator's own credential and belongs to no account",
      'add "credential_env" and remove "account", or remove "managed"',
      'name',
    )
  }
  if (mode === 'production' && namesCredential && !namesAccount && !managed) {
    findings.add(
      path,
      `${id} does not say which account its credential belongs to: a provider credential serves only one account`,
      'add "account: NAME" with the name or ID of that account, or "managed: true" if you may resell the service',
      'name',
    )
  }
}

function findProvider(
  name: string,
  providers: Map<string, ProviderConfig>,
  path: readonly string[],
  findings: Findings,
): ProviderConfig | undefined {
  const declared = providers.get(name)
  if (declared !== undefined) return declared
  // An unusable declaration is reported separately.
  if (findings.names('providers').includes(name)) return undefined
  const preset = findPreset(name)
  if (preset === undefined) {
    findings.add(
      [...path, 'provider'],
      `there is no provider or preset "${name}"`,
      suggest(name, [...findings.names('providers'), ...presetNames]),
    )
    return undefined
  }
  if (preset.baseUrl === null) {
    findings.add(
      [...path, 'provider'],
      `the preset "${name}" needs a base_url and cannot be used by its name alone`,
      `declare it: "providers: {mine: {preset: ${name}, base_url: https://…}}", then "provider: mine"`,
    )
    return undefined
  }
  const provider = { ...unsaid, name, preset: name }
  providers.set(name, provider)
  return provider
}

function resolveTimeouts(given: GivenBackend['timeouts'], byDefault: BackendTimeouts): BackendTimeouts {
  const ms = (text: string | undefined, otherwise: number): number =>
    text === undefined ? otherwise : (readDurationMs(text) ?? otherwise)
  return {
    connectMs: ms(given?.connect, byDefault.connectMs),
    headersMs: ms(given?.headers, byDefault.headersMs),
    firstContentMs: ms(given?.first_content, byDefault.firstContentMs),
    wholeAnswerMs: ms(given?.whole_answer, byDefault.wholeAnswerMs),
    idleMs: ms(given?.idle, byDefault.idleMs),
    totalMs: ms(given?.total, byDefault.totalMs),
  }
}

/** Each is its own failure domain, so that a failure of one demonstrates failover. */
function simulatedBackend(id: string): BackendConfig {
  return {
    id,
    provider: { ...unsaid, name: simulatedPreset, preset: simulatedPreset },
    model: id,
    credential: undefined,
    credentialEnv: undefined,
    account: undefined,
    managed: false,
    failureDomain: id,
    facts: { capabilities: simulatedCapabilities },
    embeddings: undefined,
    addsMarks: true,
    timeouts: defaultTimeouts(false),
    simulated: true,
  }
}

const ownHosts = ['localhost', '127.0.0.1', '[::1]']

/** In production, credentials must be encrypted in transit, unless the operator allows otherwise (contract 21.10). */
function checkEncrypted({ name, baseUrl, plainHttp }: ProviderConfig, findings: Findings): void {
  if (baseUrl === undefined || plainHttp || !isPlainHttp(baseUrl) || ownHosts.includes(new URL(baseUrl).hostname))
    return
  findings.add(
    ['providers', name, 'base_url'],
    'a credential would be sent unencrypted',
    'use https, or add "plain_http: true" if the network is private and trusted',
  )
}
