import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '..', '..', 'docs')

/** The base URL in docs/clients.md; tests replace it with their own. */
export const writtenBaseUrl = 'http://127.0.0.1:8787/v1'

/** The code blocks of one language under one heading of a page in docs, in order, as a reader would paste them. */
export function documentedBlocks(heading: string, language: string, page = 'clients.md'): string[] {
  const sections = readFileSync(join(folder, page), 'utf8').split(/^## /m)
  const section = sections.find((text) => text.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`docs/${page} has no heading "${heading}"`)
  const blocks = Array.from(section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm))
  return blocks.filter((block) => block[1] === language).map((block) => block[2]!)
}
