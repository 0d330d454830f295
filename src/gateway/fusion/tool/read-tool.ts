import type { Conversation, ToolChoice } from '../../../domain/conversation.ts'
import { invalidRequest, ServiceError } from '../../../domain/errors.ts'
import type { PresetName } from '../../../domain/fusion-presets.ts'
import { fusionFunctionName, fusionToolType } from '../../../domain/profiles.ts'
import { readFusionParameters } from '../engine/read-parameters.ts'
import type { FusionSettings } from '../engine/settings.ts'

/** The fusion tool as the caller attached it. */
export interface FusionTool {
  readonly settings: FusionSettings
  /** Whether the caller's `tool_choice` allows nothing else. */
  readonly isForced: boolean
  /** Whether the model may call it at all. */
  readonly isAllowed: boolean
}

/**
 * Parses the attached tool; undefined if there is none. `usual` returns the default settings (contract 16.4).
 * @throws ServiceError `reserved_tool_name`, `invalid_request` if the tool is not valid
 */
export function readFusionTool(
  conversation: Conversation,
  usual: (preset?: PresetName, maxLatencyMs?: number) => FusionSettings,
): FusionTool | undefined {
  const { fusionTool, isFusionForced = false, tools, toolChoice, stream } = conversation
  if (fusionTool === undefined) {
    if (!isFusionForced) return undefined
    const problem = `tool_choice names ${fusionToolType}, which is not in tools. Add {"type": "${fusionToolType}"} to tools.`
    throw invalidRequest('tool_choice', problem)
  }
  if (tools.some((tool) => tool.type !== 'hosted' && tool.name === fusionFunctionName)) {
    const words = { name: fusionFunctionName, type: fusionToolType }
    throw new ServiceError('reserved_tool_name', { param: 'tools', words })
  }
  const { maxToolCalls = Number.POSITIVE_INFINITY } = conversation.hints
  const settings = readFusionParameters(fusionTool['parameters'], stream, 'parameters', usual)
  if (maxToolCalls < 1) return { settings: { ...settings, mode: 'auto' }, isForced: false, isAllowed: false }
  return {
    settings: { ...settings, maxRuns: Math.min(settings.maxRuns, Math.floor(maxToolCalls)) },
    isForced: isFusionForced || isForcedBy(toolChoice, tools),
    isAllowed: isAllowedBy(toolChoice),
  }
}

function isForcedBy(choice: ToolChoice | undefined, tools: Conversation['tools']): boolean {
  if (choice?.type === 'tool') return choice.name === fusionFunctionName
  if (choice?.type === 'allowed')
    return (
      choice.mode === 'required' && choice.names.length > 0 && choice.names.every((name) => name === fusionFunctionName)
    )
  return choice?.type === 'required' && tools.length === 0
}

function isAllowedBy(choice: ToolChoice | undefined): boolean {
  if (choice?.type === 'allowed') return choice.names.includes(fusionFunctionName)
  return choice?.type !== 'none'
}
