import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseObject } from '../../domain/json.ts'
import { replaceFile } from './replace-file.ts'

const name = 'running.json'
const maxFileCharacters = 4_096

/** The addresses of a running service. */
interface Addresses {
  readonly baseUrl: string
  readonly appUrl: string
}

/**
 * Announces the addresses of the service on this data folder to other commands (contract 33.6). Returns a function that
 * withdraws them. @throws the system error
 */
export function announceRunning(dataDir: string, { baseUrl, appUrl }: Addresses): () => void {
  const path = join(dataDir, name)
  replaceFile(path, `${JSON.stringify({ pid: process.pid, base_url: baseUrl, app_url: appUrl })}\n`)
  return () => {
    if (read(path)?.pid === process.pid) rmSync(path, { force: true })
  }
}

/** The addresses of the service that runs on this data folder; undefined if none runs. */
export function findRunning(dataDir: string): Addresses | undefined {
  const found = read(join(dataDir, name))
  return found !== undefined && isAlive(found.pid) ? found : undefined
}

function read(path: string): (Addresses & { pid: number }) | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    if (text.length > maxFileCharacters) return undefined
    const { pid, base_url: baseUrl, app_url: appUrl } = parseObject(text) ?? {}
    const isWhole = typeof pid === 'number' && typeof baseUrl === 'string' && typeof appUrl === 'string'
    return isWhole ? { pid, baseUrl, appUrl } : undefined
  } catch {
    // The file is missing, unreadable, or damaged: treat the service as not running.
    return undefined
  }
}

/** Whether the process exists. A killed process leaves its file behind. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
