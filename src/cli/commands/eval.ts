import type { Command } from '../command.ts'
import { evalOptions } from './eval/eval-options.ts'

/** `svc-router eval`. Its implementation is imported only when it runs, so that other commands start faster. */
export const evalFusion: Command = {
  name: 'eval',
  summary:
    'Compare fusion (several models answer, and you get one reply) with each of your models alone, on questions with checkable answers.',
  arguments: [],
  needsCredentials: true,
  options: evalOptions,
  example: 'eval --dry-run',
  run: async (invocation) => (await import('./eval/run-eval.ts')).runEval(invocation),
}
