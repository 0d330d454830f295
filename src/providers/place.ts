import {
  compactCredential,
  readAwsKey,
  readServiceAccount,
  regionShape,
  type CloudKind,
} from '../domain/cloud-credentials.ts'
import type { Vendor } from './registry.ts'

const placeholder = /\{(region|project)\}/g

/** What a vendor's base URL is filled in with. */
export interface Place {
  readonly region?: string | undefined
  readonly project?: string | undefined
}

/** What a cloud credential itself says about where it is used. */
export function placeOf(kind: CloudKind | undefined, credential: string | undefined): Place {
  if (kind === undefined || credential === undefined) return {}
  if (kind === 'aws') return { region: readAwsKey(credential)?.region }
  return { project: readServiceAccount(credential)?.projectId }
}

/** The vendor's base URL for a region, or its only one. */
export function vendorUrl({ baseUrl, regionalUrl }: Vendor, region: string | undefined): string | null {
  return region === undefined ? baseUrl : (regionalUrl ?? baseUrl)
}

/** Whether the base URL cannot be known before a region is named. */
export function needsRegion(baseUrl: string | null): boolean {
  return baseUrl?.includes('{region}') ?? false
}

/** The base URL with its placeholders filled in. @throws TypeError where one is not known, as a full sentence */
export function fillBaseUrl(template: string, place: Place): string {
  return template.replace(placeholder, (_, name: string) => {
    const value = name === 'region' ? place.region : place.project
    if (value === undefined) throw new TypeError(`The base URL needs a ${name}.`)
    if (name === 'region' && !regionShape.test(value)) throw new TypeError('The region does not look like one.')
    return encodeURIComponent(value)
  })
}

/** A credential as it is kept, or what is wrong with it and how it is had. Neither repeats any of it. */
export type CheckedCredential =
  | { readonly text: string; readonly place: Place }
  | { readonly problem: string; readonly fix: string }

/** Checks a credential of a vendor whose requests are signed, and takes of its JSON what is used. */
export function checkCredential(kind: CloudKind | undefined, text: string): CheckedCredential {
  if (kind === undefined || (kind === 'aws' && !text.startsWith('{'))) return { text, place: {} }
  const compact = compactCredential(kind, text)
  if (compact !== undefined) return { text: compact, place: placeOf(kind, compact) }
  return kind === 'aws'
    ? {
        problem: 'is JSON and no AWS access key',
        fix: 'give what "aws configure export-credentials" prints, or a Bedrock API key',
      }
    : {
        problem: 'is not the JSON key of a Google service account',
        fix: 'give the key file that "gcloud iam service-accounts keys create" writes',
      }
}

/** Headers that frame the request itself or that are ours. */
const unsendable = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-request-id',
])

/** Whether a credential can be sent in the header of that name, in lower case. */
export function canCarryCredential(name: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,63}$/.test(name) && !unsendable.has(name)
}

/** Whether requests to an address travel unencrypted. */
export function isPlainHttp(url: string): boolean {
  return new URL(url).protocol === 'http:'
}
