import { defaultPreset, type PresetName } from '../../domain/fusion-presets.ts'
import type { FusionDefaults } from '../../domain/profiles.ts'
import type { FusionMember } from './ports.ts'

interface Preset {
  /** How many answers are asked for. */
  readonly panelSize: number
  readonly panelMs: number
  /** For each attempt at judging. */
  readonly judgeMs: number
  /** From the first dispatch until the answer begins to stream, or, where it is held back, to its last byte. */
  readonly totalMs: number
  /** Whether a panel that agrees is believed without a judge: cheap, and one agreed answer in ten is wrong. */
  readonly agreementIsEnough: boolean
  /**
   * How often more a decision over a material disagreement is judged, each time in another order, where the two best are
   * less than `closeLead` of 10 points apart; the readings are averaged.
   */
  readonly furtherLooks: number
  readonly closeLead: number
  /** Tokens that one panel answer may have. */
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
    furtherLooks: 0,
    closeLead: 1,
    maxPanelTokens: 2_048,
  },
  balanced: {
    panelSize: 3,
    panelMs: 45_000,
    judgeMs: 25_000,
    totalMs: 120_000,
    agreementIsEnough: false,
    furtherLooks: 1,
    closeLead: 1,
    maxPanelTokens: 4_096,
  },
  quality: {
    panelSize: 5,
    panelMs: 120_000,
    judgeMs: 45_000,
    totalMs: 300_000,
    agreementIsEnough: false,
    furtherLooks: 3,
    closeLead: 3,
    maxPanelTokens: 8_192,
  },
}

/** A caller that waits for a whole answer gives up early: its connection is silent all the time (contract 15.3). */
const wholeAnswerMs = 55_000

/** What a caller may ask to see of the deliberation (contract 16.23). */
export const includable = ['analysis', 'responses', 'scores', 'timings'] as const
/** Whether the tool is the model's to call, or deliberated about in any case (contract 16.13). */
export const modes = ['auto', 'always'] as const
/** What the panel reads (contract 16.17). */
export const contexts = ['conversation', 'question'] as const
/** How a run is shown in responses (contract 16.24). */
export const resultItems = ['auto', 'reasoning', 'mcp_call', 'native', 'none'] as const
/** What becomes of a question beside calls of the caller's tools (contract 16.25). */
export const mixedWays = ['defer', 'drop'] as const
/** How hard models may be told to think, in OpenAI's words; every format makes of them what it can. */
export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

type OneOf<Words extends readonly string[]> = Words[number]

/** Everything that decides how one deliberation runs. */
export interface FusionSettings extends Preset {
  readonly preset: PresetName
  /** `always` deliberates whether or not the model asks for it; for the tool only. */
  readonly mode: OneOf<typeof modes>
  /** The models that are asked, by backend id or model name; chosen by the plan where absent. */
  readonly panelModels?: readonly string[]
  /** The model that judges, likewise. */
  readonly judgeModel?: string
  /** Answers after which only a grace is waited; half of the panel unless said. */
  readonly quorum?: number
  /** What the caller holds to be a good answer, at most 2000 characters. */
  readonly criteria?: string
  /** For the tool: whether the panel sees the conversation or the question alone. */
  readonly context: OneOf<typeof contexts>
  readonly maxRuns: number
  /** US dollars; nothing is dispatched that could cost more. */
  readonly maxCostUsd?: number
  /** For the panel only. */
  readonly temperature?: number
  readonly reasoningEffort?: OneOf<typeof reasoningEfforts>
  /** Fixes every choice of ours. */
  readonly seed?: number
  readonly include: readonly OneOf<typeof includable>[]
  readonly resultItem: OneOf<typeof resultItems>
  readonly mixed: OneOf<typeof mixedWays>
  /** Whether the caller of a stream is told how far it is, as reasoning. */
  readonly tellsProgress: boolean
  /** Whether the caller may know which models were asked; the operator says so, never the caller. */
  readonly namesModels: boolean
}

/** The settings of a preset. A whole answer has at most 55 s, or `maxLatencyMs`; its phases shrink and grow alike. */
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
    tellsProgress: true,
    namesModels: false,
  }
}

/** The settings of an operator's defaults, of which only what is among the members counts. */
export function settingsFrom(
  { preset = defaultPreset, panelSize, panelModels, judgeModel, namesModels }: FusionDefaults,
  members: readonly FusionMember[],
  stream: boolean,
  maxLatencyMs?: number,
): FusionSettings {
  const usual = settingsOf(preset, stream, maxLatencyMs)
  const isThere = (name: string): boolean => members.some(({ id, model }) => id === name || model === name)
  const panel = panelModels?.filter(isThere) ?? []
  return {
    ...usual,
    ...(panelSize === undefined ? {} : { panelSize }),
    ...(panel.length === 0 ? {} : { panelModels: panel }),
    ...(judgeModel === undefined || !isThere(judgeModel) ? {} : { judgeModel }),
    ...(namesModels === undefined ? {} : { namesModels }),
  }
}

/** The same settings where there is no more time than `limitMs`: the phases shrink alike. */
export function shortened(settings: FusionSettings, limitMs: number): FusionSettings {
  return limitMs >= settings.totalMs ? settings : { ...settings, ...timesWithin(settings, limitMs) }
}

type Times = Pick<Preset, 'totalMs' | 'panelMs' | 'judgeMs'>

function timesWithin({ totalMs, panelMs, judgeMs }: Times, limitMs: number): Times {
  const part = (ms: number): number => Math.round((ms * limitMs) / totalMs)
  return { totalMs: part(totalMs), panelMs: part(panelMs), judgeMs: part(judgeMs) }
}
