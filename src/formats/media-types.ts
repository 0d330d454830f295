/** A data URL up to its data: its media type, and the parameters. */
export const dataUrl = /^data:([^;,]*)((?:;[^;,]*)*),/i

const typesByExtension: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  xml: 'text/xml',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  aac: 'audio/aac',
  aiff: 'audio/aiff',
  flac: 'audio/flac',
  m4a: 'audio/m4a',
  ogg: 'audio/ogg',
  opus: 'audio/opus',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
}

/** The media type by the extension of a name or path; undefined if it is unknown. */
export function mediaTypeOf(name: string): string | undefined {
  const extension = /\.(\w{1,5})$/.exec(name)?.[1]?.toLowerCase()
  return extension === undefined ? undefined : typesByExtension[extension]
}

/** The media type that the URL of an image states: of a data URL, or by its extension. Undefined if it states none. */
export function statedType(url: string): string | undefined {
  const type = dataUrl.exec(url)?.[1] ?? mediaTypeOf(URL.parse(url)?.pathname ?? '')
  return type === '' ? undefined : type?.toLowerCase()
}
