/** Share of the remaining text that comes from the beginning; the rest comes from the end. */
const headShare = 0.7

/** The beginning and end of a text: at most this many characters, plus a line that says how much is missing. */
export function shortenMiddle(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const head = Math.floor(maxCharacters * headShare)
  const tail = maxCharacters - head
  const missing = text.length - maxCharacters
  return `${text.slice(0, head)}\n[${missing} characters left out here]\n${text.slice(text.length - tail)}`
}
