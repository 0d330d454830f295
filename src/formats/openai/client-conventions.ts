import type { ClientConventions } from '../client-conventions.ts'
import { errorFields } from '../error-fields.ts'

/** How OpenAI's own API behaves; also used for paths that belong to no format. */
export const openaiConventions: ClientConventions = {
  writeError: (error) => ({ error: { ...errorFields(error), ...error.signals } }),
  addVersion: false,
}
