import { sectionsOf } from '../markdown.ts'
import type { Doc } from './doc.ts'

/** Most characters of a query that are read, and most words of it. */
export const maxQueryCharacters = 100
const maxWords = 8
const maxFound = 20
/** Characters of the text around the first word that was found, on each side. */
const aroundCharacters = 90
/** How much more a word counts in a title or a heading than in the text. */
const titleWeight = 8
const headingWeight = 4

interface Section {
  readonly doc: Doc
  readonly heading: string
  readonly id: string | undefined
  readonly text: string
  readonly lowerTitle: string
  readonly lowerHeading: string
  readonly lowerText: string
}

/** One page that a search found. */
export interface Found {
  /** The page, with the place of its best section. */
  readonly href: string
  readonly title: string
  /** The section's heading; empty for the text before the first one. */
  readonly heading: string
  /** A piece of plain text around what was found. */
  readonly excerpt: string
}

/** Finds pages by their words. A search reads each text once for each word. */
export class SearchIndex {
  readonly #sections: readonly Section[]

  constructor(docs: readonly Doc[]) {
    this.#sections = docs.flatMap((doc) =>
      sectionsOf(doc.markdown).map(({ id, heading, text }): Section => ({
        doc,
        id,
        heading,
        text,
        lowerTitle: doc.title.toLowerCase(),
        lowerHeading: heading.toLowerCase(),
        lowerText: text.toLowerCase(),
      })),
    )
  }

  /** The pages with a section that has every word of the query, the best first: at most 20. */
  find(query: string): readonly Found[] {
    const words = wordsOf(query)
    if (words.length === 0) return []
    const best = new Map<Doc, { readonly section: Section; readonly score: number }>()
    for (const section of this.#sections) {
      const score = scoreOf(section, words)
      if (score > (best.get(section.doc)?.score ?? 0)) best.set(section.doc, { section, score })
    }
    return [...best.values()]
      .toSorted((a, b) => b.score - a.score)
      .slice(0, maxFound)
      .map(({ section }) => ({
        href: section.id === undefined ? section.doc.path : `${section.doc.path}#${section.id}`,
        title: section.doc.title,
        heading: section.heading,
        excerpt: excerptOf(section, words),
      }))
  }
}

function wordsOf(query: string): readonly string[] {
  const words = query.slice(0, maxQueryCharacters).toLowerCase().split(/\s+/)
  return [...new Set(words.filter((word) => word !== ''))].slice(0, maxWords)
}

/** 0 where a word is missing. */
function scoreOf({ lowerTitle, lowerHeading, lowerText }: Section, words: readonly string[]): number {
  let sum = 0
  for (const word of words) {
    const score =
      (lowerTitle.includes(word) ? titleWeight : 0) +
      (lowerHeading.includes(word) ? headingWeight : 0) +
      (lowerText.includes(word) ? 1 : 0)
    if (score === 0) return 0
    sum += score
  }
  return sum
}

function excerptOf({ text, lowerText }: Section, words: readonly string[]): string {
  const places = words.map((word) => lowerText.indexOf(word)).filter((place) => place >= 0)
  const place = places.length === 0 ? 0 : Math.min(...places)
  const from = Math.max(0, place - aroundCharacters)
  const to = Math.min(text.length, place + aroundCharacters)
  return `${from > 0 ? '…' : ''}${text.slice(from, to).trim()}${to < text.length ? '…' : ''}`
}
