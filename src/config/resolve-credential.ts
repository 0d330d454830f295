import { checkCredential, needsRegion, vendorUrl, type CloudLocation } from '../providers/cloud-location.ts'
import { vendorEndpoint } from '../providers/registry.ts'
import { Secret } from '../runtime/secret.ts'
import type { ProviderConfig } from './config.ts'
import type { Findings } from './findings.ts'
import { findPreset } from './presets.ts'

/** The credential in a backend's environment variable, in the form in which it is used. Problems go to `findings`. */
export function resolveCredential(
  id: string,
  variable: string | undefined,
  provider: ProviderConfig,
  findings: Findings,
): Secret | undefined {
  const path = ['backends', id, 'credential_env']
  const isUnset = variable !== undefined && (findings.env[variable] ?? '').trim() === ''
  if (isUnset && !findings.needsCredentials) return undefined
  const secret =
    variable === undefined ? undefined : findings.secret(path, variable, `it must contain the credential of ${id}`)
  if (secret === undefined) return undefined
  const checked = checkCredential(findPreset(provider.preset)?.signing, secret.reveal())
  if ('problem' in checked) {
    findings.add(path, `the credential in ${variable} ${checked.problem}`, checked.fix)
    return undefined
  }
  checkRegion(id, provider, checked.location, findings)
  return new Secret(checked.text)
}

function checkRegion(id: string, provider: ProviderConfig, location: CloudLocation, findings: Findings): void {
  const preset = findPreset(provider.preset)
  if (preset === undefined) return
  const { baseUrl, region, name } = provider
  const template = baseUrl ?? vendorUrl({ ...preset, ...vendorEndpoint(preset, provider.format) }, region)
  if (!needsRegion(template) || (region ?? location.region) !== undefined) return
  // An invalid region is reported separately.
  if (findings.mentions(['providers', name, 'region'])) return
  findings.add(
    ['backends', id, 'provider'],
    `"${name}" needs a region, and the credential does not name one`,
    `declare it: "providers: {mine: {preset: ${provider.preset}, region: us-east-1}}", then "provider: mine"`,
  )
}
