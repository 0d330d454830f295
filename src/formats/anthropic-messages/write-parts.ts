import { Buffer } from 'node:buffer'
import type { CacheLifetime, InputPart } from '../../domain/conversation.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import { unsupported } from '../assert-translatable.ts'
import { cacheControl } from '../cache/placed-blocks.ts'
import type { Draft } from '../fields.ts'

/** Image types that models accept. */
const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const pdf = 'application/pdf'
/** The assumed type of a file without one: nothing else is sent as bare base64. */
const untyped = pdf

/** Whether the text may be sent: providers reject blocks of whitespace. */
export function isEncodable(text: string): boolean {
  return /\S/.test(text)
}

/**
 * Writes the content of a user or a tool as blocks, with the caller's cache marks if the model takes them. @throws
 * ServiceError `unsupported_parameter` for audio, file ids, and unsupported file types
 */
export function writeParts(parts: readonly InputPart[], takesMarks: boolean): JsonObject[] {
  const blocks: JsonObject[] = []
  for (const part of parts) {
    const block = writePart(part)
    if (block !== undefined) blocks.push(takesMarks && part.type !== 'audio' ? withMark(block, part.mark) : block)
  }
  return blocks
}

/** The block with the caller's cache mark, if it has one. */
export function withMark(block: JsonObject, mark: CacheLifetime | undefined): JsonObject {
  return mark === undefined ? block : { ...block, cache_control: cacheControl(mark) }
}

function writePart(part: InputPart): JsonObject | undefined {
  switch (part.type) {
    case 'text':
      return isEncodable(part.text) ? { type: 'text', text: part.text } : undefined
    case 'image':
      return writeImage(part.url)
    case 'file':
      return writeFile(part)
    case 'audio':
      throw unsupported('messages', 'The backends of this profile do not support audio. Send the text instead.')
  }
}

function writeImage(url: string): JsonObject {
  const data = readDataUrl(url)
  if (data === undefined) return { type: 'image', source: { type: 'url', url } }
  return { type: 'image', source: { type: 'base64', media_type: imageType(data.type), data: data.base64 } }
}

function imageType(type: string): string {
  const known = type === 'image/jpg' ? 'image/jpeg' : type
  if (imageTypes.has(known)) return known
  throw unsupported('messages', 'The backends of this profile accept only JPEG, PNG, GIF, and WebP images.')
}

function writeFile(file: Extract<InputPart, { readonly type: 'file' }>): JsonObject {
  const source = fileSource(file)
  if (source['type'] === 'image') return source
  const block: Draft<JsonObject> = { type: 'document', source }
  if (file.filename !== undefined && file.filename !== '') block['title'] = file.filename
  return block
}

/** The source of a document, or a whole image block if the file is an image. */
function fileSource(file: Extract<InputPart, { readonly type: 'file' }>): JsonObject {
  if (file.data === undefined) {
    if (file.url !== undefined) return { type: 'url', url: file.url }
    throw unsupported(
      'messages',
      'A file is referenced by an ID, which the backends of this profile cannot open. Send the content of the file.',
    )
  }
  const { type, base64 } = readDataUrl(file.data) ?? { type: untyped, base64: file.data }
  if (type.startsWith('image/')) {
    return { type: 'image', source: { type: 'base64', media_type: imageType(type), data: base64 } }
  }
  if (type === pdf) return { type: 'base64', media_type: pdf, data: base64 }
  if (type.startsWith('text/') || type === 'application/json') {
    return { type: 'text', media_type: 'text/plain', data: Buffer.from(base64, 'base64').toString('utf8') }
  }
  throw unsupported('messages', 'The backends of this profile accept only PDF and text files.')
}

/** The parts of a data URL; undefined for any other URL. */
function readDataUrl(url: string): { readonly type: string; readonly base64: string } | undefined {
  if (!url.startsWith('data:')) return undefined
  const comma = url.indexOf(',')
  const head = comma < 0 ? '' : url.slice('data:'.length, comma)
  const data = url.slice(comma + 1)
  const type = (head.split(';')[0] ?? '').toLowerCase()
  if (/;base64$/i.test(head)) return { type, base64: data }
  return { type, base64: Buffer.from(decodeUri(data), 'utf8').toString('base64') }
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Not percent-encoded after all: use it as it is.
    return text
  }
}

/** A call's arguments as the object that this format requires; anything else becomes its `input` (contract 11.17). */
export function writeInput(text: string): JsonObject {
  if (text === '') return {}
  try {
    const value = JSON.parse(text) as JsonObject
    return isObject(value) ? value : { input: value }
  } catch {
    return { input: text }
  }
}
