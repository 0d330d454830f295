import type { Command } from './command.ts'
import { evalOptions } from './eval-options.ts'

/** `svc-router eval`: its parts are read where it is run, since every other command starts without them. */
export const evalFusion: Command = {
  name: 'eval',
  summary: 'Measure fusion against your models alone, on questions with checkable answers.',
  arguments: [],
  needsCredentials: true,
  options: evalOptions,
  example: 'eval --dry-run',
  run: async (invocation) => (await import('./run-eval.ts')).runEval(invocation),
}
