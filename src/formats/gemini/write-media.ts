import type { InputPart } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { unsupported } from '../assert-translatable.ts'
import { dataUrl, mediaTypeOf } from '../media-types.ts'

/**
 * Writes one part of a message or tool result. @throws ServiceError `unsupported_parameter` if Gemini does not support
 * it
 */
export function writePart(part: InputPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { text: part.text }
    case 'image':
      return part.url.startsWith('data:') ? inline(part.url, 'image/jpeg') : linked(part.url, 'image/jpeg')
    case 'audio':
      return { inlineData: { mimeType: `audio/${part.format}`, data: part.data } }
    case 'file': {
      const type = mediaTypeOf(part.filename ?? '') ?? 'application/pdf'
      if (part.data !== undefined) {
        return part.data.startsWith('data:')
          ? inline(part.data, type)
          : { inlineData: { mimeType: type, data: part.data } }
      }
      if (part.url !== undefined) return linked(part.url, type)
      throw unsupported(
        'messages',
        'A file is referenced by an ID, which the backends of this profile cannot open. Send the content of the file.',
      )
    }
  }
}

function inline(url: string, otherwise: string): JsonObject {
  const found = dataUrl.exec(url)
  if (found === null) throw unsupported('messages', 'A data URL in this request is incomplete. Send data:TYPE;base64,…')
  const [head, type = '', parameters = ''] = found
  const mimeType = type === '' ? otherwise : type.toLowerCase() === 'image/jpg' ? 'image/jpeg' : type
  const data = url.slice(head.length)
  if (/;base64$/i.test(parameters)) return { inlineData: { mimeType, data } }
  return { inlineData: { mimeType, data: Buffer.from(unescape(data), 'utf8').toString('base64') } }
}

/** Invalid percent escapes stay as they are. */
function unescape(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Google fetches public URLs itself and requires their media type. */
function linked(url: string, otherwise: string): JsonObject {
  if (!URL.canParse(url)) {
    throw unsupported('messages', 'An image or a file has neither a URL nor a data URL. Send one of them.')
  }
  return { fileData: { mimeType: mediaTypeOf(new URL(url).pathname) ?? otherwise, fileUri: url } }
}
