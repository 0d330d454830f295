import { errorFields } from '../error-fields.ts'
import type { ClientManners } from '../manners.ts'

/** How OpenAI's own API behaves; also used for paths that belong to no format. */
export const openaiManners: ClientManners = {
  writeRefusal: (refusal) => ({ error: { ...errorFields(refusal), ...refusal.signals } }),
  addVersion: false,
}
