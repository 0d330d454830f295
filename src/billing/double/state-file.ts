import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { SetupError } from '../../domain/setup-error.ts'
import { type DoubleState, emptyState } from './state.ts'

/** Reads what an earlier double remembered; an empty one where there was none. @throws SetupError where it cannot be read */
export function readStateFile(path: string, nowMs: number): DoubleState {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return emptyState(nowMs)
    throw unusable(path)
  }
  try {
    return { ...emptyState(nowMs), ...(JSON.parse(text) as DoubleState) }
  } catch {
    throw unusable(path)
  }
}

/** Writes it, readable by this user alone; a crash leaves the old one or the new one. */
export function writeStateFile(path: string, state: DoubleState): void {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, JSON.stringify({ about: 'Simulated subscriptions: no money moved.', ...state }), { mode: 0o600 })
  renameSync(draft, path)
}

function unusable(path: string): SetupError {
  return new SetupError(`${path} cannot be read: it holds the simulated subscriptions`, 'delete it and start again')
}
