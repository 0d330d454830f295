/**
 * Whether an `If-None-Match` header names this ETag: as `*`, in a list, or made weak by a proxy (RFC 9110, 13.1.2).
 * `etag` is a quoted string.
 */
export function namesEtag(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (ifNoneMatch == null) return false
  const names: readonly string[] = ifNoneMatch.match(/"[^"]*"/g) ?? []
  return ifNoneMatch.trim() === '*' || names.includes(etag)
}
