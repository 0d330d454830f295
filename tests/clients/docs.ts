import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '..', '..', 'docs')

/** The base URL that docs/clients.md writes down; a test puts its own in its place. */
export const writtenBaseUrl = 'http://127.0.0.1:8787/v1'

/** The code blocks of one language below one heading of a page of docs, in order: what a reader would paste. */
export function documentedBlocks(heading: string, language: string, page = 'clients.md'): string[] {
  const sections = readFileSync(join(folder, page), 'utf8').split(/^## /m)
  const section = sections.find((text) => text.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`docs/${page} has no heading "${heading}"`)
  const blocks = Array.from(section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm))
  return blocks.filter((block) => block[1] === language).map((block) => block[2]!)
}
