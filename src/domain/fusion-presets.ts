/** How much one fusion may spend, in ascending order. */
export const fusionPresetNames = ['fast', 'balanced', 'quality'] as const
export type PresetName = (typeof fusionPresetNames)[number]

/** The preset if neither the operator nor the client sets one. */
export const defaultPreset: PresetName = 'balanced'

/** The maximum panel size: the letter of each answer must be unique (contract 16.15). */
export const maxPanelSize = 8
