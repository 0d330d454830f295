import type { InputPart } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { lifetimeOf } from '../cache/placed-blocks.ts'
import { type Draft, isArray, objectField, requiredString, stringField, wrongType } from '../fields.ts'

/**
 * Reads the content of a user, a system message, or a tool result, as a string or as blocks. Blocks of unknown types,
 * and those of tools that Anthropic ran itself, are skipped; `path` is the content's own (contract 2.23). @throws
 * ServiceError `invalid_request`
 */
export function readParts(content: Json | undefined, path: string): InputPart[] {
  const parts: InputPart[] = []
  if (typeof content === 'string') {
    if (content !== '') parts.push({ type: 'text', text: content })
    return parts
  }
  if (content === undefined || content === null) return parts
  if (!isArray(content)) throw wrongType(path, 'a string or an array of blocks')
  for (let index = 0; index < content.length; index++) {
    const block = content[index]
    const itemPath = `${path}[${index}]`
    if (!isObject(block)) throw wrongType(itemPath, 'an object')
    readPart(block, itemPath, parts)
  }
  return parts
}

/** Reads one input block and adds its content to `parts`. @throws ServiceError `invalid_request` */
export function readPart(block: JsonObject, path: string, parts: InputPart[]): void {
  const before = parts.length
  readContent(block, path, parts)
  const mark = lifetimeOf(block['cache_control'])
  const last = parts.at(-1)
  if (mark === undefined || last === undefined || parts.length === before || last.type === 'audio') return
  parts[parts.length - 1] = { ...last, mark }
}

function readContent(block: JsonObject, path: string, parts: InputPart[]): void {
  switch (block['type']) {
    case 'text':
      pushText(requiredString(block, 'text', `${path}.`), parts)
      break
    case 'image': {
      const part = readImage(block, path)
      if (part !== undefined) parts.push(part)
      break
    }
    case 'document':
      readDocument(block, path, parts)
      break
    case 'search_result':
      readSearchResult(block, path, parts)
      break
    default:
  }
}

function pushText(text: string, parts: InputPart[]): void {
  if (text !== '') parts.push({ type: 'text', text })
}

function readImage(block: JsonObject, path: string): InputPart | undefined {
  const source = objectField(block, 'source', `${path}.`)
  if (source === undefined) throw wrongType(`${path}.source`, 'an object')
  const itemPath = `${path}.source.`
  switch (source['type']) {
    case 'base64':
      return { type: 'image', url: dataUrl(source, itemPath) }
    case 'url':
      return { type: 'image', url: requiredString(source, 'url', itemPath) }
    case 'file':
      return { type: 'file', id: requiredString(source, 'file_id', itemPath) }
    default:
      return undefined
  }
}

function readDocument(block: JsonObject, path: string, parts: InputPart[]): void {
  const source = objectField(block, 'source', `${path}.`)
  if (source === undefined) throw wrongType(`${path}.source`, 'an object')
  const itemPath = `${path}.source.`
  const title = stringField(block, 'title', `${path}.`)
  const file: Draft<Extract<InputPart, { type: 'file' }>> = { type: 'file' }
  switch (source['type']) {
    case 'base64':
      file.data = dataUrl(source, itemPath)
      break
    case 'url':
      file.url = requiredString(source, 'url', itemPath)
      break
    case 'file':
      file.id = requiredString(source, 'file_id', itemPath)
      break
    case 'text':
      pushText(entitle(title, requiredString(source, 'data', itemPath)), parts)
      return
    case 'content':
      if (title !== undefined) pushText(title, parts)
      for (const part of readParts(source['content'], `${itemPath}content`)) parts.push(part)
      return
    default:
      return
  }
  if (title !== undefined) file.filename = title
  parts.push(file)
}

function readSearchResult(block: JsonObject, path: string, parts: InputPart[]): void {
  const texts = readParts(block['content'], `${path}.content`).flatMap((part) =>
    part.type === 'text' ? [part.text] : [],
  )
  const { source } = block
  const title = stringField(block, 'title', `${path}.`)
  pushText(entitle(title, [...(typeof source === 'string' ? [source] : []), ...texts].join('\n')), parts)
}

function dataUrl(source: JsonObject, itemPath: string): string {
  return `data:${requiredString(source, 'media_type', itemPath)};base64,${requiredString(source, 'data', itemPath)}`
}

/** Other formats have no titles, but the model needs to know which document it reads. */
function entitle(title: string | undefined, text: string): string {
  return title === undefined || title === '' ? text : `${title}\n\n${text}`
}
