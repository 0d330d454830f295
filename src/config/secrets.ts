import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseObject } from '../domain/json.ts'
import { createFolder } from '../runtime/create-folder.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { SetupError } from '../runtime/setup-error.ts'

/** The file below the data folder with the secrets that local mode generated. */
export const secretsFileName = 'secrets.json'
export const sealingKeyBytes = 32
const pepperBytes = 32
const minPepperCharacters = 16
const linklessCodes = ['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP']

/** The secrets in `secrets.json`. */
export interface KeptSecrets {
  readonly pepper: string
  readonly sealingKey: Uint8Array
}

/** Parses 32 bytes in base64, base64url, or hex; undefined for anything else. */
export function readSealingKey(text: string): Uint8Array | undefined {
  const trimmed = text.trim()
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return new Uint8Array(Buffer.from(trimmed, 'hex'))
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)) return undefined
  const bytes = Buffer.from(trimmed, 'base64')
  return bytes.length === sealingKeyBytes ? new Uint8Array(bytes) : undefined
}

/** Whether a text is long enough to be a pepper. */
export function isPepper(text: string): boolean {
  return text.length >= minPepperCharacters
}

/** Reads the stored secrets; undefined if there are none yet. @throws SetupError if they cannot be read */
export function readKeptSecrets(dataDir: string): KeptSecrets | undefined {
  const path = join(dataDir, secretsFileName)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw new SetupError(`${path} cannot be read (${codeOf(error)})`, 'give this user permission to read it')
  }
  const kept = parseKept(text)
  if (kept === undefined) {
    throw new SetupError(
      `${path} is damaged: the keys and credentials in this data folder depend on it`,
      'restore it from a backup, or start with another data folder (--data FOLDER)',
    )
  }
  return kept
}

/**
 * Generates the secrets of a new data folder and stores them, readable by this user only (contract 31.4). If another
 * process was faster, returns that one's secrets. @throws SetupError if the folder is not writable, or already contains
 * a database
 */
export function makeKeptSecrets(dataDir: string, random: RandomBytes): KeptSecrets {
  const path = join(dataDir, secretsFileName)
  const text = JSON.stringify({
    about:
      'Made by svc-router for local use. Without it, the API keys and encrypted credentials in this folder cannot be used.',
    pepper: Buffer.from(random(pepperBytes)).toString('base64url'),
    sealing_key: Buffer.from(random(sealingKeyBytes)).toString('base64'),
  })
  const draft = `${path}.${process.pid}`
  try {
    createFolder(dataDir)
    if (readdirSync(dataDir).some((name) => name.endsWith('.db') || name.endsWith('.sqlite'))) throw lostSecrets(path)
    writeFileSync(draft, `${text}\n`, { mode: 0o600 })
    publishOnce(draft, path)
  } catch (error) {
    if (error instanceof SetupError) throw error
    throw unwritableFolder(dataDir, codeOf(error))
  }
  const kept = readKeptSecrets(dataDir)
  if (kept === undefined) throw unwritableFolder(dataDir, 'ENOENT')
  return kept
}

/**
 * Renames the finished file unless another process was faster. On file systems without hard links, the last one wins.
 */
function publishOnce(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') {
      if (!linklessCodes.includes(codeOf(error))) throw error
      renameSync(draft, path)
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** The error for a data folder that is not writable. */
function unwritableFolder(dataDir: string, code: string): SetupError {
  return new SetupError(
    `the data folder ${dataDir} cannot be written (${code})`,
    'give this user permission to write there, or choose another folder with --data FOLDER',
  )
}

function lostSecrets(path: string): SetupError {
  return new SetupError(
    `the data folder contains a database, but ${secretsFileName} is missing, so no API key could be verified`,
    `restore ${path}, set the environment variables that contain the secrets, or start with another data folder (--data FOLDER)`,
  )
}

function parseKept(text: string): KeptSecrets | undefined {
  const { pepper, sealing_key: sealingKeyText } = parseObject(text) ?? {}
  if (typeof pepper !== 'string' || !isPepper(pepper) || typeof sealingKeyText !== 'string') return undefined
  const sealingKey = readSealingKey(sealingKeyText)
  return sealingKey === undefined ? undefined : { pepper, sealingKey }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}
