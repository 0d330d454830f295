import { describe, expect, test } from 'vitest'
import { errorMessage } from '../../../../src/domain/error-message.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import type { Json } from '../../../../src/domain/json.ts'
import { readFusionParameters } from '../../../../src/gateway/fusion/engine/read-parameters.ts'
import { presets, settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'

function refusalOf(parameters: Json): ServiceError {
  try {
    readFusionParameters(parameters, true)
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('the fusion parameters', () => {
  test('they are optional, and the default preset is balanced', () => {
    expect(readFusionParameters(undefined, true)).toEqual(settingsOf('balanced', true))
    expect(readFusionParameters(null, true).preset).toBe('balanced')
    expect(readFusionParameters({}, true)).toMatchObject({ preset: 'balanced', panelSize: 3, totalMs: 120_000 })
  })

  test('a preset can be named, and has the names that others use', () => {
    expect(readFusionParameters({ preset: 'quality' }, true)).toMatchObject({ panelSize: 5, totalMs: 300_000 })
    expect(readFusionParameters({ preset: 'general-fast' }, true)).toMatchObject({ preset: 'fast', panelSize: 2 })
    expect(readFusionParameters({ preset: 'general-high' }, true).preset).toBe('quality')
    expect(readFusionParameters({ preset: 'general-budget' }, true).preset).toBe('balanced')
  })

  test('every setting can be set', () => {
    const read = readFusionParameters(
      {
        mode: 'always',
        analysis_models: ['a', 'b'],
        model: 'c',
        criteria: 'short',
        context: 'question',
        max_runs: 2,
        max_cost_usd: 0.5,
        max_completion_tokens: 900,
        temperature: 0.3,
        reasoning: { effort: 'low' },
        quorum: 2,
        seed: 7,
        include: ['analysis', 'timings'],
        result_item: 'native',
        mixed: 'drop',
      },
      true,
    )
    expect(read).toMatchObject({
      mode: 'always',
      panelModels: ['a', 'b'],
      panelSize: 2,
      judgeModel: 'c',
      criteria: 'short',
      context: 'question',
      maxRuns: 2,
      maxCostUsd: 0.5,
      maxPanelTokens: 900,
      temperature: 0.3,
      reasoningEffort: 'low',
      quorum: 2,
      seed: 7,
      include: ['analysis', 'timings'],
      resultItem: 'native',
      mixed: 'drop',
    })
  })

  test('null means not set', () => {
    expect(readFusionParameters({ seed: null, preset: null, max_latency_ms: null }, true)).toEqual(
      settingsOf('balanced', true),
    )
  })

  test('the total time limits each phase, too', () => {
    const { totalMs, panelMs, judgeMs } = readFusionParameters({ max_latency_ms: 60_000 }, true)
    expect({ totalMs, panelMs, judgeMs }).toEqual({ totalMs: 60_000, panelMs: 22_500, judgeMs: 12_500 })
  })

  test('a non-streaming answer has 55 s unless it asks for more', () => {
    expect(readFusionParameters({}, false).totalMs).toBe(55_000)
    expect(readFusionParameters({ preset: 'fast' }, false).totalMs).toBe(presets.fast.totalMs)
    expect(readFusionParameters({ max_latency_ms: 200_000 }, false).totalMs).toBe(200_000)
  })
})

describe('an invalid parameter gives a 400 that names it in at most 240 characters', () => {
  const cases: readonly [string, Json, string, RegExp][] = [
    ['a list', [], 'parameters', /must be an object/],
    ['an unknown name', { wibble: 1 }, 'parameters.wibble', /^Unknown parameter wibble\. Use: preset, .*, mixed\.$/],
    ['a long name', { ['w'.repeat(60)]: 1 }, `parameters.${'w'.repeat(24)}`, /, mixed\.$/],
    ['a near miss', { panel_sise: 1 }, 'parameters.panel_sise', /Did you mean panel_size\?/],
    ['an invalid name', { '<b>\n': 1 }, 'parameters.?', /^Unknown parameter \?\./],
    ['a name of the prototype', { constructor: 1 }, 'parameters.constructor', /^Unknown parameter constructor\./],
    ['an unknown preset', { preset: 'toString' }, 'parameters.preset', /fast, balanced, quality/],
    ['too large a panel', { panel_size: 9 }, 'parameters.panel_size', /from 1 to 8/],
    ['half a member', { panel_size: 2.5 }, 'parameters.panel_size', /whole number/],
    ['no models', { analysis_models: [] }, 'parameters.analysis_models', /1 to 8/],
    ['nine models', { analysis_models: Array(9).fill('a') }, 'parameters.analysis_models', /1 to 8/],
    ['a model that is a number', { analysis_models: ['a', 3] }, 'parameters.analysis_models[1]', /string/],
    ['a quorum above the panel', { panel_size: 2, quorum: 3 }, 'parameters.quorum', /only 2 models/],
    ['too long criteria', { criteria: 'x'.repeat(2001) }, 'parameters.criteria', /2000 characters/],
    ['a negative cost', { max_cost_usd: -1 }, 'parameters.max_cost_usd', /from 0/],
    ['too little time', { max_latency_ms: 100 }, 'parameters.max_latency_ms', /from 5000/],
    ['an unknown part', { include: ['prompts'] }, 'parameters.include[0]', /analysis, responses/],
    ['reasoning without effort', { reasoning: {} }, 'parameters.reasoning.effort', /none, minimal, low/],
  ]
  test.each(cases)('%s', (_, parameters, param, message) => {
    const error = refusalOf(parameters)
    const links = new Proxy({}, { get: () => 'https://example.com' }) as Parameters<typeof errorMessage>[1]
    const text = errorMessage(error, links)
    expect(error.status).toBe(400)
    expect(error.facts.param).toBe(param)
    expect(text).toMatch(message)
    expect(text.length).toBeLessThanOrEqual(240)
  })
})
