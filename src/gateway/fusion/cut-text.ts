/** Of what is kept, the share that is the beginning; the rest is the end. */
const headShare = 0.7

/** The beginning and the end of a text, at most so many characters besides the line that says what is missing. */
export function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const head = Math.floor(maxCharacters * headShare)
  const tail = maxCharacters - head
  const missing = text.length - maxCharacters
  return `${text.slice(0, head)}\n[${missing} characters left out here]\n${text.slice(text.length - tail)}`
}
