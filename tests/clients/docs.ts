import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'clients.md'), 'utf8')

/** The base URL that docs/clients.md writes down; a test puts its own in its place. */
export const writtenBaseUrl = 'http://127.0.0.1:8787/v1'

/** The code blocks of one language below one heading of docs/clients.md, in order: what a reader would paste. */
export function documentedBlocks(heading: string, language: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`docs/clients.md has no heading "${heading}"`)
  const blocks = Array.from(section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm))
  return blocks.filter((block) => block[1] === language).map((block) => block[2]!)
}
