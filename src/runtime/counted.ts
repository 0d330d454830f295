/** A count with its noun: `1 request`, `5 requests`. For nouns whose plural ends in -s. */
export function counted(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : `${noun}s`}`
}
