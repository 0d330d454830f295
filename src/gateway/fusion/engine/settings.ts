import { defaultPreset, type PresetName } from '../../../domain/fusion-presets.ts'
import type { FusionDefaults } from '../../../domain/profiles.ts'
import type { FusionMember } from './ports.ts'

interface Preset {
  /** Number of answers to request. */
  readonly panelSize: number
  readonly panelMs: number
  /** Time limit per judge attempt. */
  readonly judgeMs: number
  /** From the first call until the answer starts to stream or, if it is buffered, to its last byte. */
  readonly totalMs: number
  /** Whether to skip the judge if the panel agrees. This is cheap, but one agreed answer in ten is wrong. */
  readonly agreementIsEnough: boolean
  /**
   * How often a material disagreement is judged again, each time in another order, if the two best are less than
   * `closeLead` of 10 points apart; the analyses are averaged.
   */
  readonly extraJudgePasses: number
  readonly closeLead: number
  /** Token limit of one panel answer. */
  readonly maxPanelTokens: number
}

/** The presets (contract 15.3). */
export const presets: Readonly<Record<PresetName, Preset>> = {
  fast: {
    panelSize: 2,
    panelMs: 12_000,
    judgeMs: 8_000,
    totalMs: 40_000,
    agreementIsEnough: true,
    extraJudgePasses: 0,
    closeLead: 1,
    maxPanelTokens: 2_048,
  },
  balanced: {
    panelSize: 3,
    panelMs: 45_000,
    judgeMs: 25_000,
    totalMs: 120_000,
    agreementIsEnough: false,
    extraJudgePasses: 1,
    closeLead: 1,
    maxPanelTokens: 4_096,
  },
  quality: {
    panelSize: 5,
    panelMs: 120_000,
    judgeMs: 45_000,
    totalMs: 300_000,
    agreementIsEnough: false,
    extraJudgePasses: 3,
    closeLead: 3,
    maxPanelTokens: 8_192,
  },
}

/**
 * A caller that waits for a whole answer gives up early, because its connection is silent all the time (contract
 * 15.3).
 */
const wholeAnswerMs = 55_000

/** What a caller may request to see of the deliberation (contract 16.23). */
export const includable = ['analysis', 'responses', 'scores', 'timings'] as const
/** Whether the model decides to call the tool, or a deliberation always runs (contract 16.13). */
export const modes = ['auto', 'always'] as const
/** What the panel sees (contract 16.17). */
export const contexts = ['conversation', 'question'] as const
/** How a run is shown in responses (contract 16.24). */
export const resultItems = ['auto', 'reasoning', 'mcp_call', 'native', 'none'] as const
/** What happens to a question asked alongside calls of the caller's tools (contract 16.25). */
export const mixedWays = ['defer', 'drop'] as const
/** Reasoning effort, in OpenAI's terms; every format maps them to its own. */
export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

type OneOf<Words extends readonly string[]> = Words[number]

/** All settings of one deliberation. */
export interface FusionSettings extends Preset {
  readonly preset: PresetName
  /** `always` deliberates even if the model does not call the tool; for the tool only. */
  readonly mode: OneOf<typeof modes>
  /** The models to ask, by backend id or model name; the plan chooses if absent. */
  readonly panelModels?: readonly string[]
  /** The model that judges, likewise. */
  readonly judgeModel?: string
  /** Number of answers after which only a grace period is waited for; half of the panel if absent. */
  readonly quorum?: number
  /** The caller's definition of a good answer, at most 2000 characters. */
  readonly criteria?: string
  /** For the tool: whether the panel sees the conversation or only the question. */
  readonly context: OneOf<typeof contexts>
  readonly maxRuns: number
  /** US dollars; no call is made that could exceed it. */
  readonly maxCostUsd?: number
  /** For the panel only. */
  readonly temperature?: number
  readonly reasoningEffort?: OneOf<typeof reasoningEfforts>
  /** Makes all of fusion's own choices deterministic. */
  readonly seed?: number
  readonly include: readonly OneOf<typeof includable>[]
  readonly resultItem: OneOf<typeof resultItems>
  readonly mixed: OneOf<typeof mixedWays>
  /** Whether a stream reports progress, as reasoning. */
  readonly streamsProgress: boolean
  /** Whether the caller may know which models were called; set by the operator, never by the caller. */
  readonly namesModels: boolean
}

/** The settings of a preset. A whole answer has at most 55 s, or `maxLatencyMs`; all phases scale with it. */
export function settingsOf(preset: PresetName, stream: boolean, maxLatencyMs?: number): FusionSettings {
  const usual = presets[preset]
  const { totalMs } = usual
  return {
    preset,
    ...usual,
    ...timesWithin(usual, maxLatencyMs ?? (stream ? totalMs : Math.min(totalMs, wholeAnswerMs))),
    mode: 'auto',
    context: 'conversation',
    maxRuns: 1,
    include: [],
    resultItem: 'auto',
    mixed: 'defer',
    streamsProgress: true,
    namesModels: false,
  }
}

/** The settings from an operator's defaults, ignoring models that are not members. */
export function settingsFrom(
  { preset = defaultPreset, panelSize, panelModels, judgeModel, namesModels }: FusionDefaults,
  members: readonly FusionMember[],
  stream: boolean,
  maxLatencyMs?: number,
): FusionSettings {
  const usual = settingsOf(preset, stream, maxLatencyMs)
  const isMember = (name: string): boolean => members.some(({ id, model }) => id === name || model === name)
  const panel = panelModels?.filter(isMember) ?? []
  return {
    ...usual,
    ...(panelSize === undefined ? {} : { panelSize }),
    ...(panel.length === 0 ? {} : { panelModels: panel }),
    ...(judgeModel === undefined || !isMember(judgeModel) ? {} : { judgeModel }),
    ...(namesModels === undefined ? {} : { namesModels }),
  }
}

/** The same settings with at most `limitMs`; all phases scale with it. */
export function withTimeLimit(settings: FusionSettings, limitMs: number): FusionSettings {
  return limitMs >= settings.totalMs ? settings : { ...settings, ...timesWithin(settings, limitMs) }
}

type Times = Pick<Preset, 'totalMs' | 'panelMs' | 'judgeMs'>

function timesWithin({ totalMs, panelMs, judgeMs }: Times, limitMs: number): Times {
  const part = (ms: number): number => Math.round((ms * limitMs) / totalMs)
  return { totalMs: part(totalMs), panelMs: part(panelMs), judgeMs: part(judgeMs) }
}
