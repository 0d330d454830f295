import type { Sampling } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { countField } from '../fields.ts'

/** How many answers the provider writes, if the request asks for fewer. @throws ServiceError `invalid_request` */
export function readCandidates(body: JsonObject): Pick<Sampling, 'candidates'> {
  const choices = countField(body, 'n') ?? 1
  const candidates = countField(body, 'best_of') ?? 1
  return candidates > choices ? { candidates } : {}
}
