import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { SetupError } from '../domain/setup-error.ts'
import type { Program } from './ports.ts'

/** What a supervisor or another terminal may send us is meant for the program that has taken our place. */
const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a program in this terminal to its end: its input and output are ours, signals reach it, and its exit code is
 * given (128 + the signal's number where a signal ended it). @throws SetupError where it cannot be started
 */
export async function runProgram(
  { name, args, env }: Program,
  environment: Readonly<Record<string, string | undefined>>,
  isAtTerminal: boolean,
): Promise<number> {
  const forward = (signal: NodeJS.Signals): void => {
    // Ctrl-C at a terminal reaches the program by itself: a second one would cut its own handling short.
    if (signal !== 'SIGINT' || !isAtTerminal) child?.kill(signal)
  }
  // Before the program runs: a signal that came in between would end us alone.
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
    `see whether it runs by itself: ${name} --version`,
  )
}
