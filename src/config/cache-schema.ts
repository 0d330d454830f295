import { z } from 'zod'
import { group } from './settings.ts'

/** Providers' prompt caches, as backends and profiles configure them (contract 44.8). */
export const cache = group({
  marks: z
    .enum(['auto', 'off'], { error: 'expected auto or off' })
    .optional()
    .describe(
      'Whether requests are marked so that the provider stores what will be read again. auto adds marks where they pay off. Marks of clients are kept in any case. Default auto.',
    ),
})
