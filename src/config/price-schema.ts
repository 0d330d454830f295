import { z } from 'zod'
import { group, map, whole } from './settings.ts'

const maxPrice = 1_000_000
const maxInputTokens = 100_000_000
const maxMultiplier = 100

/** An amount of money. */
export const amount = z
  .number({ error: 'expected an amount of money, such as 1.25' })
  .min(0, { error: 'expected an amount of money, such as 1.25' })
  .max(maxPrice, { error: `expected at most ${maxPrice}` })

const multiplier = z
  .number({ error: 'expected a factor, such as 0.5' })
  .min(0, { error: 'expected a factor, such as 0.5' })
  .max(maxMultiplier, { error: `expected at most ${maxMultiplier}` })

const rates = {
  input: amount.describe('Price per million input tokens.'),
  output: amount.describe('Price per million output tokens.'),
  cached_input: amount
    .optional()
    .describe(
      'Price per million input tokens read from a cache. Default: the published share of the input price, or the input price if none is published.',
    ),
  cache_write: amount
    .optional()
    .describe('Price per million input tokens written to a cache. Default: as for cached_input.'),
  cache_write_1h: amount
    .optional()
    .describe('Price per million input tokens written to a cache for an hour. Default: as for cached_input.'),
  audio_input: amount.optional().describe('Price per million tokens of audio input.'),
  audio_output: amount.optional().describe('Price per million tokens of audio output.'),
  image_input: amount.optional().describe('Price per million tokens of image input.'),
  image_output: amount.optional().describe('Price per million tokens of image output.'),
}

/** A provider's prices of a model, in US dollars per million tokens (contract 42.4). */
export const usdPerMillion = group({
  ...rates,
  long_context: group({
    above_tokens: whole(1, maxInputTokens).describe('The number of input tokens above which these prices apply.'),
    ...rates,
  })
    .optional()
    .describe(
      'Prices of all tokens of requests with long input. Default: the published surcharge on the usual prices, if there is one.',
    ),
  service_tiers: map(/^[a-z_]{1,32}$/, 'the name of a service tier, such as flex', multiplier, 16)
    .optional()
    .describe(
      'Prices of service tiers relative to the usual prices, such as flex: 0.5. Default: the published ratios.',
    ),
})
