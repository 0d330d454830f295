/** The maximum number of bytes of the HTML at a path: of a guide, and of other pages (contract 20.6). */
export function maxPageBytes(path: string): number {
  return path.startsWith('/docs/') ? 40 * 1024 : 30 * 1024
}
