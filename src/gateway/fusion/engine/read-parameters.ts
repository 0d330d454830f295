import { invalidRequest, type ServiceError } from '../../../domain/errors.ts'
import { defaultPreset, fusionPresetNames, maxPanelSize, type PresetName } from '../../../domain/fusion-presets.ts'
import { type Json, type JsonObject, isObject } from '../../../domain/json.ts'
import { nearest } from '../../../domain/profiles.ts'
import { isArray, type Draft } from '../../../formats/fields.ts'
import {
  contexts,
  includable,
  mixedWays,
  modes,
  reasoningEfforts,
  resultItems,
  settingsOf,
  type FusionSettings,
} from './settings.ts'

const maxCriteriaCharacters = 2_000
const maxRunsLimit = 2
const maxCompletionTokens = 32_768
const shortestLatencyMs = 5_000
const longestLatencyMs = 600_000
const maxCostUsd = 1_000
const maxSeed = 2 ** 53 - 1
/** The longest model name, characters. */
const maxNameCharacters = 200
/** Characters of an unknown name that the error repeats. */
const maxShownCharacters = 24
/** The same for an error that also lists all names. */
const maxListedCharacters = 15

const presetNames: Readonly<Record<string, PresetName>> = {
  fast: 'fast',
  balanced: 'balanced',
  quality: 'quality',
  'general-fast': 'fast',
  'general-budget': 'balanced',
  'general-high': 'quality',
}

type Reader = (draft: Draft<FusionSettings>, value: Json, path: string) => void

/**
 * One reader per parameter except `preset` and `max_latency_ms`, which determine the others' defaults (contract
 * 16.13-16.25).
 */
const readers: Readonly<Record<string, Reader>> = {
  mode: (draft, value, path) => (draft.mode = oneOf(value, path, modes)),
  panel_size: (draft, value, path) => (draft.panelSize = integer(value, path, 1, maxPanelSize)),
  quorum: (draft, value, path) => (draft.quorum = integer(value, path, 1, maxPanelSize)),
  analysis_models: (draft, value, path) => {
    const models = listOf(value, path, maxPanelSize)
    draft.panelModels = models.map((model, index) => text(model, `${path}[${index}]`, maxNameCharacters))
    draft.panelSize = models.length
  },
  model: (draft, value, path) => (draft.judgeModel = text(value, path, maxNameCharacters)),
  criteria: (draft, value, path) => (draft.criteria = text(value, path, maxCriteriaCharacters)),
  context: (draft, value, path) => (draft.context = oneOf(value, path, contexts)),
  max_runs: (draft, value, path) => (draft.maxRuns = integer(value, path, 1, maxRunsLimit)),
  max_cost_usd: (draft, value, path) => (draft.maxCostUsd = number(value, path, 0, maxCostUsd)),
  max_completion_tokens: (draft, value, path) => (draft.maxPanelTokens = integer(value, path, 1, maxCompletionTokens)),
  temperature: (draft, value, path) => (draft.temperature = number(value, path, 0, 2)),
  reasoning: (draft, value, path) => {
    const [effort, effortPath] = isObject(value) ? [value['effort'], `${path}.effort`] : [value, path]
    draft.reasoningEffort = oneOf(effort, effortPath, reasoningEfforts)
  },
  seed: (draft, value, path) => (draft.seed = integer(value, path, -maxSeed, maxSeed)),
  include: (draft, value, path) => {
    const names = listOf(value, path, includable.length)
    draft.include = names.map((name, index) => oneOf(name, `${path}[${index}]`, includable))
  },
  result_item: (draft, value, path) => (draft.resultItem = oneOf(value, path, resultItems)),
  mixed: (draft, value, path) => (draft.mixed = oneOf(value, path, mixedWays)),
}

const names = ['preset', 'max_latency_ms', ...Object.keys(readers)]

/** The settings of a preset, or the defaults if none is named. */
type UsualSettings = (preset?: PresetName, maxLatencyMs?: number) => FusionSettings

/**
 * Parses the tool's `parameters`; null counts as absent, for single parameters too, and `usual` returns the defaults
 * (contract 16.26).
 * @throws ServiceError `invalid_request` with `param` for an unknown name or an invalid value
 */
export function readFusionParameters(
  parameters: Json | undefined,
  stream: boolean,
  path = 'parameters',
  usual: UsualSettings = (preset = defaultPreset, latencyMs) => settingsOf(preset, stream, latencyMs),
): FusionSettings {
  if (parameters === undefined || parameters === null) return usual()
  if (!isObject(parameters)) throw invalidRequest(path, `${path} must be an object.`)
  for (const name of Object.keys(parameters)) if (!names.includes(name)) throw unknownParameter(name, path)
  const preset = presetOf(parameters, path)
  const latency = parameters['max_latency_ms']
  const latencyMs = isGiven(latency)
    ? integer(latency, `${path}.max_latency_ms`, shortestLatencyMs, longestLatencyMs)
    : undefined
  const draft: Draft<FusionSettings> = { ...usual(preset, latencyMs) }
  for (const [name, read] of Object.entries(readers)) {
    const value = parameters[name]
    if (isGiven(value)) read(draft, value, `${path}.${name}`)
  }
  if (draft.quorum !== undefined && draft.quorum > draft.panelSize) {
    const most = draft.panelSize
    throw invalidRequest(
      `${path}.quorum`,
      `${path}.quorum is ${draft.quorum}, but only ${most} ${most === 1 ? 'model is' : 'models are'} asked. Lower it.`,
    )
  }
  return draft
}

function presetOf(parameters: JsonObject, path: string): PresetName | undefined {
  const value = parameters['preset']
  if (!isGiven(value)) return undefined
  const preset = typeof value === 'string' && Object.hasOwn(presetNames, value) ? presetNames[value] : undefined
  if (preset !== undefined) return preset
  throw invalidRequest(`${path}.preset`, `${path}.preset must be one of ${fusionPresetNames.join(', ')}.`)
}

function unknownParameter(name: string, path: string): ServiceError {
  const near = nearest(name, names)
  const shown = /^[\w.-]+$/.test(name) ? name.slice(0, maxShownCharacters) : '?'
  const problem =
    near === undefined
      ? // Few enough names to list all of them in the message.
        `Unknown parameter ${shown.slice(0, maxListedCharacters)}. Use: ${names.join(', ')}.`
      : `Fusion has no parameter ${shown}. Did you mean ${near}?`
  return invalidRequest(`${path}.${shown}`, problem)
}

function isGiven(value: Json | undefined): value is Exclude<Json, null> {
  return value !== undefined && value !== null
}

function text(value: Json | undefined, path: string, maxCharacters: number): string {
  if (typeof value === 'string' && value !== '' && value.length <= maxCharacters) return value
  throw invalidRequest(path, `${path} must be a string of 1 to ${maxCharacters} characters.`)
}

function number(value: Json, path: string, least: number, most: number): number {
  if (typeof value === 'number' && value >= least && value <= most) return value
  throw invalidRequest(path, `${path} must be a number from ${least} to ${most}.`)
}

function integer(value: Json, path: string, least: number, most: number): number {
  if (Number.isInteger(value)) return number(value, path, least, most)
  throw invalidRequest(path, `${path} must be a whole number from ${least} to ${most}.`)
}

function oneOf<Name extends string>(value: Json | undefined, path: string, allowed: readonly Name[]): Name {
  const found = allowed.find((name) => name === value)
  if (found !== undefined) return found
  throw invalidRequest(path, `${path} must be one of ${allowed.join(', ')}.`)
}

function listOf(value: Json, path: string, most: number): readonly Json[] {
  if (isArray(value) && value.length >= 1 && value.length <= most) return value
  throw invalidRequest(path, `${path} must be a list of 1 to ${most} entries.`)
}
