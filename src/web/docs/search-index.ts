import { sectionsOf } from '../components/markdown.ts'
import type { Doc } from './doc.ts'

/** Longer queries are truncated to this many characters, then to `maxWords` words. */
export const maxQueryCharacters = 100
const maxWords = 8
const maxFound = 20
/** Characters of the text around the first word that was found, on each side. */
const aroundCharacters = 90
/** Weight of a match in a title, a heading, or the text, relative to a match in a code sample. */
const titleWeight = 16
const headingWeight = 8
const textWeight = 2

interface Section {
  readonly doc: Doc
  readonly heading: string
  readonly id: string | undefined
  readonly text: string
  readonly code: string
  readonly lowerTitle: string
  readonly lowerHeading: string
  readonly lowerText: string
  readonly lowerCode: string
}

/** A search result. */
export interface Found {
  /** The page, with the anchor of its best section. */
  readonly href: string
  readonly title: string
  /** The section's heading; empty for the text before the first one. */
  readonly heading: string
  /** Plain text around the match. */
  readonly excerpt: string
}

/** A full-text index. A search scans every section once per word. */
export class SearchIndex {
  readonly #sections: readonly Section[]

  constructor(docs: readonly Doc[]) {
    this.#sections = docs.flatMap((doc) =>
      sectionsOf(doc.markdown).map(({ id, heading, text, code }): Section => ({
        doc,
        id,
        heading,
        text,
        code,
        lowerTitle: doc.title.toLowerCase(),
        lowerHeading: heading.toLowerCase(),
        lowerText: text.toLowerCase(),
        lowerCode: code.toLowerCase(),
      })),
    )
  }

  /** Pages with a section that contains every word of the query, best match first; at most 20. */
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

/** 0 if a word is missing. */
function scoreOf({ lowerTitle, lowerHeading, lowerText, lowerCode }: Section, words: readonly string[]): number {
  let sum = 0
  for (const word of words) {
    const score =
      (lowerTitle.includes(word) ? titleWeight : 0) +
      (lowerHeading.includes(word) ? headingWeight : 0) +
      (lowerText.includes(word) ? textWeight : 0) +
      (lowerCode.includes(word) ? 1 : 0)
    if (score === 0) return 0
    sum += score
  }
  return sum
}

/** An excerpt of the text, or of the code if only the code matches. */
function excerptOf({ text, code, lowerText, lowerCode }: Section, words: readonly string[]): string {
  const first = (lower: string): number =>
    words
      .map((word) => lower.indexOf(word))
      .reduce((least, at) => (at >= 0 && (least < 0 || at < least) ? at : least), -1)
  const inText = first(lowerText)
  const isInCode = inText < 0 && first(lowerCode) >= 0
  const whole = isInCode ? code : text
  const found = Math.max(0, isInCode ? first(lowerCode) : inText)
  const from = Math.max(0, found - aroundCharacters)
  const to = Math.min(whole.length, found + aroundCharacters)
  return `${from > 0 ? '…' : ''}${whole.slice(from, to).trim()}${to < whole.length ? '…' : ''}`
}
