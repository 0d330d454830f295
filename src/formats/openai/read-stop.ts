import type { Json } from '../../domain/json.ts'
import { isArray, wrongType } from '../fields.ts'

/** Reads `stop` of chat and text completions. @throws ServiceError `invalid_request` with `param` */
export function readStop(stop: Json | undefined): readonly string[] | undefined {
  if (stop === undefined || stop === null) return undefined
  if (typeof stop === 'string') return [stop]
  if (!isArray(stop)) throw wrongType('stop', 'a string or an array of strings')
  return stop.map((text) => {
    if (typeof text !== 'string') throw wrongType('stop', 'a string or an array of strings')
    return text
  })
}
