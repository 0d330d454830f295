/** The text without trailing slashes. A pattern such as `/\/+$/` takes quadratic time on a run of slashes. */
export function withoutEndSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end -= 1
  return text.slice(0, end)
}
