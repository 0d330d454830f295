import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { errorMessage } from '../../../src/domain/error-message.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { linksFor } from '../../../src/domain/links.ts'
import { routingFor, type RoutingPreferences } from '../../../src/domain/routing-policy.ts'
import { readRoutingPreferences } from '../../../src/gateway/routing/read-preferences.ts'
import { matchingBackends } from '../../../src/gateway/routing/routing-filters.ts'
import { someBackend } from './some-backend.ts'

const eu = someBackend('eu', { region: 'eu', zeroRetention: true, usdPerMillion: { input: 3, output: 9 } })
const us = someBackend('us', { region: 'us-east-1', usdPerMillion: { input: 1, output: 4 } })
const silent = someBackend('silent')
const all = [eu, us, silent]

function refusal(run: () => unknown): ServiceError {
  try {
    run()
  } catch (error) {
    if (error instanceof ServiceError) return error
  }
  throw new Error('nothing was refused')
}

describe('requirements', () => {
  test.each<[RoutingPreferences, string[]]>([
    [{}, ['eu', 'us', 'silent']],
    [{ only: ['eu', 'model-us'] }, ['eu', 'us']],
    [{ ignore: ['model-eu', 'silent'] }, ['us']],
    [{ regions: ['eu', 'us-west-1'] }, ['eu']],
    [{ zeroRetention: true }, ['eu']],
    [{ zeroRetention: false }, ['eu', 'us', 'silent']],
    [{ maxPrice: { input: 2 } }, ['us']],
    [{ maxPrice: { output: 9 } }, ['eu', 'us']],
    [{ maxPrice: { input: 3, output: 4 } }, ['us']],
    [{ maxPrice: {} }, ['eu', 'us']],
  ])('%o leaves %o', (asked, left) => {
    expect(matchingBackends(all, routingFor(undefined, asked), 'p').map(({ id }) => id)).toEqual(left)
    // A profile can require the same, except for naming backends.
    const { only, ignore, ...policy } = asked
    if (only === undefined && ignore === undefined)
      expect(matchingBackends(all, routingFor(policy, undefined), 'p').map(({ id }) => id)).toEqual(left)
  })

  test('if none is met, the refusal counts what each excludes', () => {
    const routing = routingFor({ regions: ['eu'] }, { ignore: ['eu'] })
    const error = refusal(() => matchingBackends(all, routing, 'p'))
    expect(error.code).toBe('no_backend_matches')
    expect(errorMessage(error, linksFor('https://example.com'))).toBe(
      'No backend of p meets the requirements. Excluded backends: 1 in "ignore", 2 not in one of the required regions. Change "routing", or ask the operator to add a backend.',
    )
  })

  test('a request can only narrow those of its profile', () => {
    const policies = fc.record(
      {
        regions: fc.uniqueArray(fc.constantFrom('eu', 'us-east-1', 'asia'), { minLength: 1 }),
        zeroRetention: fc.boolean(),
        maxPrice: fc.record(
          { input: fc.integer({ min: 0, max: 5 }), output: fc.integer({ min: 0, max: 10 }) },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    )
    const left = (routing: Parameters<typeof matchingBackends>[1]): string[] => {
      try {
        return matchingBackends(all, routing, 'p').map(({ id }) => id)
      } catch {
        return []
      }
    }
    fc.assert(
      fc.property(policies, policies, (policy, asked) => {
        const both = left(routingFor(policy, asked))
        const [ofPolicy, ofRequest] = [left(routingFor(policy, undefined)), left(routingFor(undefined, asked))]
        expect(both).toEqual(ofPolicy.filter((id) => ofRequest.includes(id)))
      }),
    )
  })
})

describe('preferences in a request', () => {
  test('are read in full', () => {
    const routing = {
      sort: 'price',
      order: ['a'],
      only: ['a', 'b'],
      ignore: ['c'],
      regions: ['EU'],
      zero_retention: true,
      max_price: { input: 1, output: null },
    }
    expect(readRoutingPreferences({ routing })).toEqual({
      sort: 'price',
      order: ['a'],
      only: ['a', 'b'],
      ignore: ['c'],
      regions: ['eu'],
      zeroRetention: true,
      maxPrice: { input: 1 },
    })
    for (const absent of [{}, { routing: null }]) expect(readRoutingPreferences(absent)).toBeUndefined()
    expect(readRoutingPreferences({ routing: { sort: null } })).toEqual({})
  })

  test.each([
    ['routing', 'eu'],
    ['routing', []],
    ['routing.sort', { sort: 'fast' }],
    ['routing.only', { only: [] }],
    ['routing.only', { only: 'a' }],
    ['routing.order', { order: [1] }],
    ['routing.ignore', { ignore: Array.from({ length: 33 }, () => 'a') }],
    ['routing.order', { order: ['x'.repeat(201)] }],
    ['routing.zero_retention', { zero_retention: 'yes' }],
    ['routing.max_price', { max_price: 3 }],
    ['routing.max_price', { max_price: { request: 1 } }],
    ['routing.max_price.input', { max_price: { input: -1 } }],
    ['routing.max_price.output', { max_price: { output: '1' } }],
    // A misspelled requirement must not be ignored.
    ['routing.zero_retentoin', { zero_retentoin: true }],
    ['routing.__proto__', JSON.parse('{"__proto__": {}}')],
    ['routing.constructor', { constructor: {} }],
    ['routing.…', { 'a b': 1 }],
  ])('an invalid %s is rejected', (param, routing) => {
    const error = refusal(() => readRoutingPreferences({ routing }))
    expect([error.code, error.facts.param]).toEqual(['invalid_request', param])
  })
})
