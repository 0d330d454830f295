import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { SetupError } from '../../runtime/setup-error.ts'
import type { Program } from '../ports.ts'

/** Signals to forward: what a supervisor or another terminal sends us is meant for the child program. */
const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a program in this terminal to its end. It inherits our input and output and receives our signals. Resolves to
 * its exit code, or 128 plus the signal number if a signal ended it. @throws SetupError if it cannot be started
 */
export async function runProgram(
  { name, args, env }: Program,
  environment: Readonly<Record<string, string | undefined>>,
  isAtTerminal: boolean,
): Promise<number> {
  const forward = (signal: NodeJS.Signals): void => {
    // The terminal sends Ctrl-C to the program directly; a second signal would interrupt its handling of the first.
    if (signal !== 'SIGINT' || !isAtTerminal) child?.kill(signal)
  }
  // Register before the program starts, because an earlier signal would end only this process.
  for (const signal of forwardedSignals) process.on(signal, forward)
  let child: ChildProcess | undefined
  try {
    const program = spawn(name, args, { stdio: 'inherit', env: { ...environment, ...env } })
    child = program
    return await new Promise<number>((resolve, reject) => {
      program.once('error', (error: NodeJS.ErrnoException) => reject(inOwnWords(name, error)))
      program.once('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
    })
  } finally {
    for (const signal of forwardedSignals) process.off(signal, forward)
  }
}

function inOwnWords(name: string, error: NodeJS.ErrnoException): SetupError {
  return new SetupError(
    `${name} could not be started (${error.code ?? 'unknown'})`,
    `check that it works on its own: ${name} --version`,
  )
}
