import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseObject } from '../domain/json.ts'
import { replaceFile } from './replace-file.ts'

const name = 'running.json'
const maxFileCharacters = 4_096

/** Where a running service is reached. */
interface Addresses {
  readonly baseUrl: string
  readonly appUrl: string
}

/** Says where the service on this data folder listens, for the other commands. Gives what takes it back. @throws the system's error */
export function announceRunning(dataDir: string, { baseUrl, appUrl }: Addresses): () => void {
  const path = join(dataDir, name)
  replaceFile(path, `${JSON.stringify({ pid: process.pid, base_url: baseUrl, app_url: appUrl })}\n`)
  return () => {
    if (read(path)?.pid === process.pid) rmSync(path, { force: true })
  }
}

/** Where the service is that runs on this data folder; undefined where none does. */
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
    // It is not there, not ours to read, or damaged: then nobody says where the service runs.
    return undefined
  }
}

/** A process that was killed leaves its file behind. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
