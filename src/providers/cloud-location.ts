import {
  compactCredential,
  readAwsKey,
  readServiceAccount,
  regionShape,
  type CloudKind,
} from '../domain/cloud-credentials.ts'
import type { Vendor } from './registry.ts'

const placeholder = /\{(region|project)\}/g

/** Values for the placeholders in a vendor's base URL. */
export interface CloudLocation {
  readonly region?: string | undefined
  readonly project?: string | undefined
}

/** The location contained in a cloud credential. */
export function locationOf(kind: CloudKind | undefined, credential: string | undefined): CloudLocation {
  if (kind === undefined || credential === undefined) return {}
  if (kind === 'aws') return { region: readAwsKey(credential)?.region }
  return { project: readServiceAccount(credential)?.projectId }
}

/** The vendor's base URL for a region, or its only one. */
export function vendorUrl({ baseUrl, regionalUrl }: Vendor, region: string | undefined): string | null {
  return region === undefined ? baseUrl : (regionalUrl ?? baseUrl)
}

/** Whether the base URL depends on a region. */
export function needsRegion(baseUrl: string | null): boolean {
  return baseUrl?.includes('{region}') ?? false
}

/** Fills in the placeholders of a base URL. @throws TypeError if a value is missing, with a full sentence */
export function fillBaseUrl(template: string, location: CloudLocation): string {
  return template.replace(placeholder, (_, name: string) => {
    const value = name === 'region' ? location.region : location.project
    if (value === undefined) throw new TypeError(`The base URL needs a ${name}.`)
    if (name === 'region' && !regionShape.test(value))
      throw new TypeError('The region is not valid. Example: us-east-1.')
    return encodeURIComponent(value)
  })
}

/** A credential as stored, or what is wrong with it and how to get a valid one. Neither message contains any of it. */
export type CheckedCredential =
  | { readonly text: string; readonly location: CloudLocation }
  | { readonly problem: string; readonly fix: string }

/** Checks a credential of a vendor whose requests are signed, and keeps only the needed fields of its JSON. */
export function checkCredential(kind: CloudKind | undefined, text: string): CheckedCredential {
  if (kind === undefined || (kind === 'aws' && !text.startsWith('{'))) return { text, location: {} }
  const compact = compactCredential(kind, text)
  if (compact !== undefined) return { text: compact, location: locationOf(kind, compact) }
  return kind === 'aws'
    ? {
        problem: 'is JSON but not an AWS access key',
        fix: 'use the output of "aws configure export-credentials", or a Bedrock API key',
      }
    : {
        problem: 'is not the JSON key of a Google service account',
        fix: 'use the key file that "gcloud iam service-accounts keys create" writes',
      }
}

/** Headers that frame the request itself, or that the service sets. */
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

/** Whether a header, given its lowercase name, can carry a credential. */
export function canCarryCredential(name: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,63}$/.test(name) && !unsendable.has(name)
}

/** Whether requests to a URL are unencrypted. */
export function isPlainHttp(url: string): boolean {
  return new URL(url).protocol === 'http:'
}
