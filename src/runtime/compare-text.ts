/** Orders texts by their UTF-16 code units, for `toSorted`. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
