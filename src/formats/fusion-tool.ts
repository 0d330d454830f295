import { invalidRequest } from '../domain/errors.ts'
import type { JsonObject } from '../domain/json.ts'
import { fusionToolType } from '../domain/profiles.ts'

/**
 * Records our own server tool (contract 16.1), found at `itemPath` in the request. A second one would be ignored.
 * @throws ServiceError `invalid_request` for a second one, even if identical
 */
export function addFusionTool(declared: { fusionTool?: JsonObject }, tool: JsonObject, itemPath: string): void {
  if (declared.fusionTool !== undefined)
    throw invalidRequest(
      itemPath,
      `${itemPath} attaches ${fusionToolType} a second time. Send it once, with all of its parameters.`,
    )
  declared.fusionTool = tool
}
