import type { Conversation, ToolChoice } from '../../domain/conversation.ts'
import type { PresetName } from '../../domain/fusion-presets.ts'
import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import { fusionFunctionName, fusionToolType } from '../../domain/profiles.ts'
import { readFusionParameters } from '../fusion/read-parameters.ts'
import type { FusionSettings } from '../fusion/settings.ts'

/** The tool as a caller attached it. */
export interface FusionTool {
  readonly settings: FusionSettings
  /** Whether the caller's `tool_choice` leaves nothing else to call. */
  readonly isForced: boolean
  /** Whether the model may call it at all. */
  readonly isAllowed: boolean
}

/**
 * What the caller attached; undefined where it attached nothing. `usual` gives the settings where it says nothing.
 * @throws ServiceError `reserved_tool_name`, `invalid_request` where it cannot be what was meant
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
  const isNamed = toolChoice?.type === 'tool' && toolChoice.name === fusionFunctionName
  const isRequiredAlone = toolChoice?.type === 'required' && tools.length === 0
  return {
    settings: readFusionParameters(fusionTool['parameters'], stream, 'parameters', usual),
    isForced: isFusionForced || isNamed || isRequiredAlone,
    isAllowed: isAllowedBy(toolChoice),
  }
}

function isAllowedBy(choice: ToolChoice | undefined): boolean {
  if (choice?.type === 'allowed') return choice.names.includes(fusionFunctionName)
  return choice?.type !== 'none'
}
