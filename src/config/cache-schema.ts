import { z } from 'zod'
import { group } from './settings.ts'

/** Providers' prompt caches, as backends and profiles configure them (contract 44.8). */
export const cache = group({
  marks: z
    .enum(['auto', 'off'], { error: 'expected auto or off' })
    .optional()
    .describe(
      'Whether svc-router adds marks to requests so that the provider caches their prompts. auto adds them where they save money. Marks that clients send are always kept. Default auto.',
    ),
})
