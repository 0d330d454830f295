import { createPrivateKey } from 'node:crypto'
import { type JsonObject, isObject, parseObject } from './json.ts'

/** Credentials that sign requests instead of being sent: AWS keys and Google service accounts. */
export type CloudKind = 'aws' | 'google'

/** An AWS access key. `sessionToken` and `region` are present if the issuer gave them. */
export interface AwsKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly region?: string
}

export interface ServiceAccount {
  readonly clientEmail: string
  /** PEM. */
  readonly privateKey: string
  readonly privateKeyId: string
  readonly projectId: string
}

/** The shape of AWS regions and Google locations, which become part of a host name. */
export const regionShape = /^[a-z]{2,20}(?:-[a-z0-9]{1,20}){0,4}$/

const accessKeyShape = /^[A-Z0-9]{16,128}$/
const headerShape = /^[\x21-\x7e]{1,4096}$/
const projectShape = /^[a-z0-9][a-z0-9.:-]{2,62}$/
const emailShape = /^[\w.+-]{1,128}@[\w.-]{1,128}$/
/** The token URLs in key files of Google's own service accounts. */
const googleTokenUrls = ['https://oauth2.googleapis.com/token', 'https://accounts.google.com/o/oauth2/token']
const googleUniverse = 'googleapis.com'

/**
 * Parses an AWS key from JSON: our own form, or the output of `aws configure export-credentials`, `aws sts
 * assume-role`, or `aws iam create-access-key`. Undefined for anything else.
 */
export function readAwsKey(text: string): AwsKey | undefined {
  const given = parseObject(text)
  if (given === undefined) return undefined
  const inner = given['Credentials'] ?? given['AccessKey']
  const source = isObject(inner) ? inner : given
  const accessKeyId = memberOf(source, 'accessKeyId', accessKeyShape)
  const secretAccessKey = memberOf(source, 'secretAccessKey', headerShape)
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  const sessionToken = memberOf(source, 'sessionToken', headerShape)
  const region = memberOf(given, 'region', regionShape)
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    ...(region !== undefined && { region }),
  }
}

/**
 * Parses a Google service account from its JSON key file. Undefined for anything else, including accounts that are not
 * Google's own.
 */
export function readServiceAccount(text: string): ServiceAccount | undefined {
  const given = parseObject(text)
  if (given === undefined) return undefined
  const {
    private_key: privateKey,
    private_key_id: privateKeyId,
    token_uri: tokenUrl,
    universe_domain: universe,
  } = given
  if (typeof tokenUrl === 'string' && !googleTokenUrls.includes(tokenUrl)) return undefined
  if (typeof universe === 'string' && universe !== googleUniverse) return undefined
  const clientEmail = stringOf(given['client_email'], emailShape)
  const projectId = stringOf(given['project_id'], projectShape)
  if (clientEmail === undefined || projectId === undefined) return undefined
  if (typeof privateKey !== 'string' || !isPrivateKey(privateKey)) return undefined
  return { clientEmail, privateKey, privateKeyId: typeof privateKeyId === 'string' ? privateKeyId : '', projectId }
}

/**
 * A cloud credential as one line of JSON with only the members that we use; undefined if the text is not of this kind.
 * The reader of that kind parses it.
 */
export function compactCredential(kind: CloudKind, text: string): string | undefined {
  if (kind === 'aws') {
    const key = readAwsKey(text)
    return key === undefined ? undefined : JSON.stringify(key)
  }
  const account = readServiceAccount(text)
  if (account === undefined) return undefined
  const { clientEmail, privateKey, privateKeyId, projectId } = account
  return JSON.stringify({
    type: 'service_account',
    project_id: projectId,
    private_key_id: privateKeyId,
    private_key: privateKey,
    client_email: clientEmail,
  })
}

/** The public id of a cloud credential's key, to tell credentials apart. Undefined for any other text. */
export function publicKeyId(text: string): string | undefined {
  const given = text.startsWith('{') ? parseObject(text) : undefined
  const id = given?.['accessKeyId'] ?? given?.['private_key_id']
  return typeof id === 'string' ? id : undefined
}

/** AWS also writes these names capitalized, or as environment variables. */
function memberOf(source: JsonObject, name: string, shape: RegExp): string | undefined {
  const capital = name.replace(/^./, (first) => first.toUpperCase())
  const variable = `AWS_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
  return stringOf(source[name] ?? source[capital] ?? source[variable], shape)
}

function stringOf(value: unknown, shape: RegExp): string | undefined {
  return typeof value === 'string' && shape.test(value) ? value : undefined
}

function isPrivateKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    // Node reports invalid keys in many ways.
    return false
  }
}
