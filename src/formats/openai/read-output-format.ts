import type { OutputFormat } from '../../domain/conversation.ts'
import { type Json, isObject } from '../../domain/json.ts'
import { booleanField, type Draft, objectField, stringField, wrongType } from '../fields.ts'

/** OpenAI requires a name; this is used if the caller gave none. */
const unnamed = 'response'

/**
 * Reads `response_format` or `text.format`. Plain text is the default, and an unknown type is ignored: both return
 * undefined. @throws ServiceError `invalid_request`
 */
export function readOutputFormat(format: Json | undefined, path: string): OutputFormat | undefined {
  if (format === undefined || format === null) return undefined
  if (!isObject(format)) throw wrongType(path, 'an object')
  const { type } = format
  if (type === 'json_object') return { type }
  if (type !== 'json_schema') return undefined
  const nested = objectField(format, 'json_schema', `${path}.`)
  const source = nested ?? format
  const itemPath = nested === undefined ? `${path}.` : `${path}.json_schema.`
  const read: Draft<Extract<OutputFormat, { type: 'json_schema' }>> = {
    type,
    name: stringField(source, 'name', itemPath) ?? unnamed,
    schema: objectField(source, 'schema', itemPath) ?? {},
  }
  const description = stringField(source, 'description', itemPath)
  const strict = booleanField(source, 'strict', itemPath)
  if (description !== undefined) read.description = description
  if (strict !== undefined) read.strict = strict
  return read
}
