import { vendors, type Vendor } from '../providers/registry.ts'

/** The preset of the providers that only pretend; it cannot be used for backends of one's own. */
export const simulatedPreset = 'simulated'

/** The backends of a fresh installation: they only pretend to be models, and say so. */
export const simulatedBackendIds: readonly string[] = ['simulated-alpha', 'simulated-beta', 'simulated-gamma']

/** The presets that can be named in the configuration and in `upstream add`. */
export const presetNames: readonly string[] = Object.keys(vendors).filter((name) => name !== simulatedPreset)

/** The preset of that name; undefined where there is none that can be named (contract 21.5). */
export function findPreset(name: string): Vendor | undefined {
  return presetNames.includes(name) ? vendors[name as keyof typeof vendors] : undefined
}
