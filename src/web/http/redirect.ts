/** Longest path accepted as a redirect target. */
const maxPathCharacters = 500

/** Redirects to another of our pages with a GET (303). */
export function redirect(path: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({ Location: path })
  for (const cookie of cookies) headers.append('Set-Cookie', cookie)
  return new Response(null, { status: 303, headers })
}

/** Validates a redirect target from a request; returns `byDefault` if it is not one of our own paths. */
export function ownPath(text: string | null, byDefault: string): string {
  if (text === null || text.length > maxPathCharacters || !/^\/(?![/\\])[\w\-./?=&%~]*$/.test(text)) return byDefault
  return text
}
