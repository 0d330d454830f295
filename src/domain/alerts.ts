import { hourMs } from '../runtime/durations.ts'

/** A message about an alert that could not be sent for this long is given up: nobody needs it any more (contract 46.15). */
export const maxDeliveryAgeMs = 24 * hourMs
