import { errorFields } from '../error-fields.ts'
import type { ClientManners } from '../manners.ts'

/** As OpenAI's own API behaves: also what is told at paths that belong to no format. */
export const openaiManners: ClientManners = {
  writeRefusal: (refusal) => ({ error: { ...errorFields(refusal), ...refusal.signals } }),
  addVersion: false,
}
