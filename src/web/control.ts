import type { ControlPlane } from '../accounts/control-plane.ts'
import type { AccountVisit } from './visit.ts'

/** The control plane in the name of whoever visits. */
export function controlOf({ parts }: AccountVisit): ControlPlane {
  return parts.control
}
