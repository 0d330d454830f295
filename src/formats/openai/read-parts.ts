import type { AssistantPart, CacheLifetime, InputPart } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { type Draft, isArray, requiredString, stringField, wrongType } from '../fields.ts'
import { readMark } from './cache-marks.ts'

const contentTypes = 'a string or an array of parts'

/**
 * Reads the content of a user, a system message, or a tool result, as a string or as parts, in the spelling of either
 * OpenAI format: clients mix them. Parts of unknown types are skipped; `path` is the content's own (contract 2.23).
 * @throws ServiceError `invalid_request`
 */
export function readInputParts(content: Json | undefined, path: string): InputPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (content === undefined || content === null) return []
  if (!isArray(content)) throw wrongType(path, contentTypes)
  const parts: InputPart[] = []
  for (let index = 0; index < content.length; index++) {
    const given = content[index]
    const part = readInputPart(given, `${path}[${index}]`)
    if (part !== undefined) parts.push(isObject(given) ? withMark(part, readMark(given)) : part)
  }
  return parts
}

/** The part with the caller's cache mark, if it has one. */
export function withMark(part: InputPart, mark: CacheLifetime | undefined): InputPart {
  return mark === undefined || part.type === 'audio' ? part : { ...part, mark }
}

/** As `readInputParts`, for the model's content; adds to `parts`. @throws ServiceError `invalid_request` */
export function readAssistantParts(content: Json | undefined, path: string, parts: AssistantPart[]): void {
  if (content === undefined || content === null || content === '') return
  if (typeof content === 'string') {
    parts.push({ type: 'text', text: content })
    return
  }
  if (!isArray(content)) throw wrongType(path, contentTypes)
  for (let index = 0; index < content.length; index++) {
    const part = content[index]
    const itemPath = `${path}[${index}]`
    if (!isObject(part)) throw wrongType(itemPath, 'an object')
    if (part['type'] === 'refusal')
      parts.push({ type: 'refusal', text: requiredString(part, 'refusal', `${itemPath}.`) })
    else if (isText(part['type'])) {
      const text = requiredString(part, 'text', `${itemPath}.`)
      if (text !== '') parts.push({ type: 'text', text })
    }
  }
}

function readInputPart(part: Json | undefined, path: string): InputPart | undefined {
  if (typeof part === 'string') return { type: 'text', text: part }
  if (!isObject(part)) throw wrongType(path, 'an object')
  const { type } = part
  if (isText(type)) {
    const text = requiredString(part, 'text', `${path}.`)
    return text === '' ? undefined : { type: 'text', text }
  }
  if (type === 'image_url' || type === 'input_image') return readImage(part, path)
  if (type === 'file' || type === 'input_file') return readFile(part, path)
  if (type === 'input_audio') return readAudio(part, path)
  return undefined
}

function isText(type: Json | undefined): boolean {
  return type === 'text' || type === 'input_text' || type === 'output_text'
}

function readImage(part: JsonObject, path: string): InputPart | undefined {
  const image = part['image_url']
  const nested = isObject(image)
  const url = nested ? requiredString(image, 'url', `${path}.image_url.`) : stringField(part, 'image_url', `${path}.`)
  if (url === undefined) {
    const id = stringField(part, 'file_id', `${path}.`)
    return id === undefined ? undefined : { type: 'file', id }
  }
  const detail = nested ? stringField(image, 'detail', `${path}.image_url.`) : stringField(part, 'detail', `${path}.`)
  // `auto` is the providers' default.
  return detail === undefined || detail === 'auto' ? { type: 'image', url } : { type: 'image', url, detail }
}

function readFile(part: JsonObject, path: string): InputPart | undefined {
  const nested = part['file']
  const source = isObject(nested) ? nested : part
  const itemPath = isObject(nested) ? `${path}.file.` : `${path}.`
  const file: Draft<Extract<InputPart, { type: 'file' }>> = { type: 'file' }
  const data = stringField(source, 'file_data', itemPath)
  const url = stringField(source, 'file_url', itemPath)
  const id = stringField(source, 'file_id', itemPath)
  const filename = stringField(source, 'filename', itemPath)
  if (data !== undefined) file.data = data
  if (url !== undefined) file.url = url
  if (id !== undefined) file.id = id
  if (filename !== undefined) file.filename = filename
  return data === undefined && url === undefined && id === undefined ? undefined : file
}

function readAudio(part: JsonObject, path: string): InputPart {
  const audio = part['input_audio']
  if (!isObject(audio)) throw wrongType(`${path}.input_audio`, 'an object')
  const itemPath = `${path}.input_audio.`
  return {
    type: 'audio',
    data: requiredString(audio, 'data', itemPath),
    format: requiredString(audio, 'format', itemPath),
  }
}
