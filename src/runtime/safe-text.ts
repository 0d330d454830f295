/**
 * Characters that have effects other than being displayed: control characters (C0, DEL, C1, and with them every escape
 * sequence), line and paragraph separators, bidirectional controls, and unpaired surrogates.
 */
const unsafe = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
const allUnsafe = new RegExp(unsafe.source, 'gu')
const allUnsafeButNewline = /(?!\n)[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Whether a text contains a character that can control a terminal, break a line, or reorder surrounding text. */
export function isUnsafe(text: string): boolean {
  return unsafe.test(text)
}

/** Untrusted text for one line in a terminal, such as a table cell: every unsafe character becomes `?`. */
export function terminalLine(text: string): string {
  return text.replace(allUnsafe, '?')
}

/** Untrusted text for a terminal, with newlines. */
export function terminalText(text: string): string {
  return text.replace(allUnsafeButNewline, '?')
}

/** A value as one line of JSON for logs and terminals. Unsafe characters are escaped, so nothing is lost. */
export function safeJson(value: unknown): string {
  return escapeJson(JSON.stringify(value))
}

/** The same for existing JSON. */
export function escapeJson(json: string): string {
  if (!unsafe.test(json)) return json
  return json.replace(allUnsafe, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
