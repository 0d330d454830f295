import type { Conversation } from '../domain/conversation.ts'
import type { PresetName } from '../domain/fusion-presets.ts'
import { fusionId } from '../domain/profiles.ts'
import type { FusionMember } from '../gateway/fusion/engine/ports.ts'
import { settingsOf, type FusionSettings } from '../gateway/fusion/engine/settings.ts'
import type { Question } from './questions/question.ts'

/** The maximum length of a writer's answer in tokens, for the worst-case cost. Members have the preset's limit. */
const maxOutputTokens = 8_192
const leastSelfPanel = 2

/** A fusion to evaluate: its members and their parameters. */
export interface FusionDesign {
  readonly members: readonly FusionMember[]
  readonly settings: FusionSettings
}

/** The question as a client of `svc-router/fusion` would send it, streamed. */
export function conversationOf({ text }: Pick<Question, 'text'>): Conversation {
  return {
    profile: fusionId,
    stream: true,
    streamUsage: true,
    turns: [{ role: 'user', parts: [{ type: 'text', text }] }],
    tools: [],
    sampling: { maxOutputTokens },
    hints: {},
  }
}

/**
 * The fusion of all members, each asked once. It waits for all of them, so that every arm sees the same panel; the
 * service would continue without slow ones. A single member is its own panel.
 */
export function fusionDesign(members: readonly FusionMember[], preset: PresetName): FusionDesign {
  if (members.length < 2) return selfPanelDesign(members[0]!, members.length, preset)
  const settings = settingsOf(preset, true)
  const panelSize = members.length
  const panelModels = members.map(({ id }) => id)
  return { members, settings: { ...settings, panelModels, panelSize, quorum: panelSize, streamsProgress: false } }
}

/** The fusion of one member with itself, with as many answers as the panel has members. */
export function selfPanelDesign(member: FusionMember, members: number, preset: PresetName): FusionDesign {
  const settings = settingsOf(preset, true)
  const panelSize = Math.max(leastSelfPanel, members < 2 ? settings.panelSize : members)
  return { members: [member], settings: { ...settings, panelSize, quorum: panelSize, streamsProgress: false } }
}
