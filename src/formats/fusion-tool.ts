import type { JsonObject } from '../domain/conversation.ts'
import { invalidRequest } from '../domain/errors.ts'
import { fusionToolType } from '../domain/profiles.ts'

/**
 * Takes note of our own server tool (contract 16.1), which stands at `place` of the request. Of two of them one would go
 * unheard. @throws ServiceError `invalid_request` for a second one, also where it says the same
 */
export function addFusionTool(declared: { fusionTool?: JsonObject }, tool: JsonObject, place: string): void {
  if (declared.fusionTool !== undefined)
    throw invalidRequest(
      place,
      `${place} attaches ${fusionToolType} a second time. Send it once, with all of its parameters.`,
    )
  declared.fusionTool = tool
}
