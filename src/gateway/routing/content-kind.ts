import type { Conversation } from '../../domain/conversation.ts'

/** What a request contains that not every server handles, rarest first; `plain` is text alone. */
export type ContentKind = 'file' | 'image' | 'schema' | 'tools' | 'plain'

/** The rarest kind of content in the request: a server error counts against this kind only (contract 8.3). */
export function contentKindOf({ turns, tools, outputFormat }: Conversation): ContentKind {
  let hasImage = false
  for (const { parts } of turns) {
    for (const { type } of parts) {
      if (type === 'audio' || type === 'file') return 'file'
      hasImage ||= type === 'image'
    }
  }
  if (hasImage) return 'image'
  if (outputFormat !== undefined && outputFormat.type !== 'text') return 'schema'
  return tools.length > 0 ? 'tools' : 'plain'
}
