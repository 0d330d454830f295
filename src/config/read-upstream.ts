import type { Upstream } from '../domain/accounts.ts'
import { regionShape } from '../domain/cloud-credentials.ts'
import { formatIds, type FormatId } from '../domain/format-id.ts'
import { holdsSecret } from '../domain/secret-shapes.ts'
import {
  canCarryCredential,
  checkCredential,
  fillBaseUrl,
  isPlainHttp,
  needsRegion,
  vendorUrl,
  type CloudLocation,
} from '../providers/cloud-location.ts'
import { vendorEndpoint, type Vendor } from '../providers/registry.ts'
import { isOneLine } from '../runtime/one-line.ts'
import { Secret } from '../runtime/secret.ts'
import type { Mode } from './config.ts'
import { findPreset } from './presets.ts'
import { isProviderUrl } from './settings.ts'
import { readHeaders, readTimeouts, type GivenTimeouts } from './upstream-extras.ts'

/** Maximum length of a model name. */
export const maxModelCharacters = 200

/** A provider as a user describes it; undefined for what was not given. */
export interface GivenUpstream {
  readonly provider: string
  readonly model: string | undefined
  readonly baseUrl: string | undefined
  readonly region: string | undefined
  readonly format: string | undefined
  readonly authHeader: string | undefined
  readonly timeouts?: GivenTimeouts
  /** Extra headers, each `name=value` or `name: value`. */
  readonly headers?: readonly string[]
}

/** The same after validation. The base URL is complete once the credential is known. */
export interface CheckedUpstream {
  readonly provider: string
  readonly preset: Vendor
  readonly model: string
  readonly baseUrl: string | null
  readonly region: string | undefined
  readonly format: FormatId | null
  readonly authHeader: string | null
  readonly timeouts: Upstream['timeouts']
  readonly headers: Upstream['headers']
}

/** What can be wrong. Callers put it into their own words. */
export type UpstreamProblem =
  | 'provider_unknown'
  | 'model_missing'
  | 'base_url_missing'
  | 'base_url_malformed'
  | 'base_url_secret'
  | 'base_url_plain'
  | 'format_unknown'
  | 'auth_header_malformed'
  | 'region_malformed'
  | 'region_missing'
  | 'credential_missing'
  | 'credential_malformed'
  | 'credential_unused'
  | 'timeout_malformed'
  | 'header_malformed'

/** The description of an upstream is invalid. `preset` is the provider's, if it is known. */
export class UpstreamUnreadable extends Error {
  override readonly name = 'UpstreamUnreadable'
  readonly problem: UpstreamProblem
  readonly preset: Vendor | undefined
  /** For a malformed credential, timeout, or header: the problem and the fix. Neither repeats the value. */
  readonly detail: { readonly problem: string; readonly fix: string } | undefined

  constructor(problem: UpstreamProblem, preset?: Vendor, detail?: { readonly problem: string; readonly fix: string }) {
    super(problem)
    this.problem = problem
    this.preset = preset
    this.detail = detail
  }
}

/** Validates everything except the credential. @throws UpstreamUnreadable */
export function readUpstream(given: GivenUpstream): CheckedUpstream {
  const { provider, model, region } = given
  const preset = findPreset(provider)
  if (preset === undefined) throw new UpstreamUnreadable('provider_unknown')
  const refuse = (problem: UpstreamProblem): never => {
    throw new UpstreamUnreadable(problem, preset)
  }
  if (model === undefined || model.length > maxModelCharacters || !isOneLine(model)) return refuse('model_missing')
  const baseUrl = given.baseUrl ?? null
  const wrong = baseUrlProblem(preset, baseUrl)
  if (wrong !== undefined) refuse(wrong)
  const format = formatIds.find((known) => known === given.format)
  if (given.format !== undefined && format === undefined) refuse('format_unknown')
  const authHeader = given.authHeader?.toLowerCase() ?? null
  if (authHeader !== null && !canCarryCredential(authHeader)) refuse('auth_header_malformed')
  if (region !== undefined && !regionShape.test(region)) refuse('region_malformed')
  const timeouts = readTimeouts(given.timeouts ?? {})
  if (typeof timeouts === 'string')
    throw new UpstreamUnreadable('timeout_malformed', preset, {
      problem: timeouts,
      fix: 'a duration such as 500ms, 90s or 5m, at most 24h',
    })
  const headers = readHeaders(given.headers ?? [])
  if (typeof headers === 'string')
    throw new UpstreamUnreadable('header_malformed', preset, { problem: headers, fix: 'x-team=blue' })
  return { provider, preset, model, baseUrl, region, format: format ?? null, authHeader, timeouts, headers }
}

function baseUrlProblem(preset: Vendor, baseUrl: string | null): UpstreamProblem | undefined {
  if (baseUrl === null) return preset.baseUrl === null ? 'base_url_missing' : undefined
  if (!isProviderUrl(baseUrl)) return 'base_url_malformed'
  return holdsSecret(baseUrl) ? 'base_url_secret' : undefined
}

/**
 * The base URL, with its region and project if the provider has them, and the credential in the form that is stored.
 * The base URL is null to use the preset's own. @throws UpstreamUnreadable
 */
export function withCredential(
  { preset, baseUrl, region, format }: CheckedUpstream,
  credential: Secret | undefined,
): { readonly baseUrl: string | null; readonly credential: Secret | undefined } {
  if (credential === undefined && preset.credential === 'required')
    throw new UpstreamUnreadable('credential_missing', preset)
  if (credential !== undefined && preset.credential === 'none')
    throw new UpstreamUnreadable('credential_unused', preset)
  const checked = credential === undefined ? undefined : checkCredential(preset.signing, credential.reveal())
  if (checked !== undefined && 'problem' in checked)
    throw new UpstreamUnreadable('credential_malformed', preset, checked)
  const location: CloudLocation = { ...checked?.location, ...(region !== undefined && { region }) }
  const kept = checked === undefined ? undefined : new Secret(checked.text)
  const template = baseUrl ?? vendorUrl({ ...preset, ...vendorEndpoint(preset, format ?? undefined) }, location.region)
  if (template === null || !template.includes('{')) return { baseUrl, credential: kept }
  if (needsRegion(template) && location.region === undefined) throw new UpstreamUnreadable('region_missing', preset)
  return { baseUrl: fillBaseUrl(template, location), credential: kept }
}

/**
 * In production, credentials must be encrypted in transit: an http URL would expose them to every network on the way
 * (contract 21.10). @throws UpstreamUnreadable
 */
export function assertEncrypted(mode: Mode, preset: Vendor, baseUrl: string | null, credential?: Secret): void {
  if (mode === 'production' && credential !== undefined && baseUrl !== null && isPlainHttp(baseUrl))
    throw new UpstreamUnreadable('base_url_plain', preset)
}
