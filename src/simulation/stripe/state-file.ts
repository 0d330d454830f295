import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { SetupError } from '../../runtime/setup-error.ts'
import { type FakeStripeState, emptyState } from './state.ts'

/**
 * Reads the state of an earlier run, or an empty state if the file does not exist. @throws SetupError if it cannot be
 * read
 */
export function readStateFile(path: string, nowMs: number): FakeStripeState {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return emptyState(nowMs)
    throw unusable(path)
  }
  try {
    return { ...emptyState(nowMs), ...(JSON.parse(text) as FakeStripeState) }
  } catch {
    throw unusable(path)
  }
}

/** Writes the state, readable only by this user; a crash leaves either the old file or the new one. */
export function writeStateFile(path: string, state: FakeStripeState): void {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, JSON.stringify({ about: 'Simulated subscriptions: no money moved.', ...state }), { mode: 0o600 })
  renameSync(draft, path)
}

function unusable(path: string): SetupError {
  return new SetupError(
    `${path}, which contains the simulated subscriptions, cannot be read`,
    'delete the file and start again',
  )
}
