import { vendors, type Vendor } from '../providers/registry.ts'

/** The preset of simulated providers, which other backends cannot use. */
export const simulatedPreset = 'simulated'

/** The backends of a new installation. They are simulated and say so. */
export const simulatedBackendIds: readonly string[] = ['simulated-alpha', 'simulated-beta', 'simulated-gamma']

/** The presets that the configuration and `upstream add` accept. */
export const presetNames: readonly string[] = Object.keys(vendors).filter((name) => name !== simulatedPreset)

/** The preset with this name; undefined if there is none that users can name (contract 21.5). */
export function findPreset(name: string): Vendor | undefined {
  return presetNames.includes(name) ? vendors[name as keyof typeof vendors] : undefined
}
