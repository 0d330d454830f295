/** The longest path that a visitor is sent back to. */
const maxPathCharacters = 500

/** Sends the browser on to another of our pages, with a GET. */
export function redirect(path: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({ Location: path })
  for (const cookie of cookies) headers.append('Set-Cookie', cookie)
  return new Response(null, { status: 303, headers })
}

/** The path to go on to, as an address named it; `byDefault` where that is not one of our own pages. */
export function ownPath(text: string | null, byDefault: string): string {
  if (text === null || text.length > maxPathCharacters || !/^\/(?![/\\])[\w\-./?=&%~]*$/.test(text)) return byDefault
  return text
}
