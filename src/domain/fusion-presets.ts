/** How much may be spent on one deliberation, the least first. */
export const fusionPresetNames = ['fast', 'balanced', 'quality'] as const
export type PresetName = (typeof fusionPresetNames)[number]

/** What holds where neither the operator nor the caller says. */
export const defaultPreset: PresetName = 'balanced'

/** No panel is larger for any caller: each answer has a letter of its own (contract 16.15). */
export const maxPanelSize = 8
