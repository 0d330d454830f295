import { createPrivateKey } from 'node:crypto'
import { type JsonObject, isObject, parseObject } from './json.ts'

/** Credentials that sign requests instead of being sent: AWS's keys, a Google service account. */
export type CloudKind = 'aws' | 'google'

/** An AWS access key. `sessionToken` and `region` are there where whoever issued it gave them. */
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

/** How the names of AWS regions and of Google's locations look: they become part of a host name. */
export const regionShape = /^[a-z]{2,20}(?:-[a-z0-9]{1,20}){0,4}$/

const accessKeyShape = /^[A-Z0-9]{16,128}$/
const headerShape = /^[\x21-\x7e]{1,4096}$/
const projectShape = /^[a-z0-9][a-z0-9.:-]{2,62}$/
const emailShape = /^[\w.+-]{1,128}@[\w.-]{1,128}$/
/** Where keys of Google's own accounts say that their tokens come from. */
const googleTokenUrls = ['https://oauth2.googleapis.com/token', 'https://accounts.google.com/o/oauth2/token']
const googleUniverse = 'googleapis.com'

/**
 * An AWS key from JSON: our own form, or what `aws configure export-credentials`, `aws sts assume-role` and
 * `aws iam create-access-key` print. Undefined where it is none.
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

/** A Google service account from the JSON of its key file. Undefined where it is none, or one that is not Google's own. */
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
 * A cloud credential as one line of JSON with what we use of it and no more; undefined where the text is none of this
 * kind. What it gives is read back by the function of its kind.
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

/** What of a cloud credential is public and tells it from others: the id of its key. Undefined for any other text. */
export function publicKeyId(text: string): string | undefined {
  const given = text.startsWith('{') ? parseObject(text) : undefined
  const id = given?.['accessKeyId'] ?? given?.['private_key_id']
  return typeof id === 'string' ? id : undefined
}

/** AWS writes the same names with a capital, or as its environment variables are called. */
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
    // Node says in many ways what is wrong with it; for us it is no key.
    return false
  }
}
