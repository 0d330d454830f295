import { z } from 'zod'
import { rescueModes, routingSorts } from '../domain/routing-policy.ts'
import { flag, group, map, shaped, text } from './settings.ts'

const maxNames = 32
const maxRegions = 32
const maxPrice = 1_000_000
const maxWeight = 1_000_000

const placeShape = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/
const backendShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export const place = shaped(placeShape, 'the name of a region, such as eu or us-east-1')

function numberFrom(least: number, most: number, expected: string) {
  return z
    .number({ error: `expected ${expected}` })
    .min(least, { error: `expected ${expected}` })
    .max(most, { error: `expected at most ${most}` })
}

const price = numberFrom(0, maxPrice, 'an amount of money, such as 1.25')

/** The settings of `routing` of a profile (contract 7.24-7.26). */
export const routing = group({
  sort: z
    .enum(routingSorts, { error: `expected ${routingSorts.join(', ')}` })
    .optional()
    .describe(
      'order: as listed. balanced: by measured speed, load, errors, and price. latency: the same without price. price: the cheapest. Default order.',
    ),
  order: z
    .array(text('the ID of a backend, or the name of a model', 200), { error: 'expected a list of backends or models' })
    .min(1, { error: 'expected at least one entry' })
    .max(maxNames, { error: `expected at most ${maxNames} entries` })
    .optional()
    .describe('Backends or models to try first, in this order.'),
  weights: map(backendShape, 'a backend ID', numberFrom(0.001, maxWeight, 'a number of at least 0.001'))
    .optional()
    .describe('Relative shares of backends, for every sort but order. Default 1.'),
  max_price: group({
    input: price.optional().describe('For input.'),
    output: price.optional().describe('For output.'),
  })
    .optional()
    .describe('Excludes backends without a price, or with a higher one, in US dollars per million tokens.'),
  regions: z
    .array(place, { error: 'expected a list of regions' })
    .min(1, { error: 'expected at least one entry' })
    .max(maxRegions, { error: `expected at most ${maxRegions} entries` })
    .optional()
    .describe('Excludes backends that are not declared to be in one of these regions.'),
  hedge: flag
    .optional()
    .describe(
      'Whether a stream that starts slowly is also requested from a second backend, for at most 5% of requests. Default false.',
    ),
  sticky: flag
    .optional()
    .describe(
      'Whether a session stays with the backend that has its prompt cached, as long as that is cheaper. Default true.',
    ),
  rescue: z
    .enum(rescueModes, { error: `expected ${rescueModes.join(', ')}` })
    .optional()
    .describe(
      'Whether another backend continues a stream that breaks off. verified: only if its answer begins with the text so far. marked: if it does not, with a note and its whole answer. Default never.',
    ),
  zero_retention: flag.optional().describe('Excludes backends that are not declared to have zero retention.'),
})
