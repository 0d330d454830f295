import { readdirSync, readFileSync } from 'node:fs'
import type { Doc } from './doc.ts'
import { splitDoc } from './split-doc.ts'

const folder = new URL('../../../docs/', import.meta.url)
/** The most requested documents come first; the others follow by name. */
const first = [
  'clients.md',
  'fusion.md',
  'upstreams.md',
  'routing.md',
  'caching.md',
  'cached-turns.md',
  'costs.md',
  'budgets.md',
  'webhooks.md',
  'retries.md',
  'contract.md',
]
/** Documents that are split because they are too long for one page. */
const split = ['clients.md', 'contract.md']
/** The base URL in the files, for a service on the reader's own machine. */
const writtenBaseUrl = 'http://127.0.0.1:8787/v1'
const writtenRoot = writtenBaseUrl.slice(0, -'/v1'.length)

/** Reads the project's documents and replaces the base URL in them with this service's. Called once. */
export function readDocFiles(baseUrl: string): readonly Doc[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
  const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length)
  return names
    .toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b))
    .flatMap((name) => {
      const doc = readDoc(name, baseUrl)
      return split.includes(name) ? splitDoc(doc, firstSentence) : [doc]
    })
}

function readDoc(name: string, baseUrl: string): Doc {
  const text = readFileSync(new URL(name, folder), 'utf8')
  const [, title = name, markdown = ''] = /^# +(\S.*)\n([\s\S]*)$/.exec(text) ?? []
  const here = markdown
    .replaceAll(writtenBaseUrl, baseUrl)
    .replaceAll(new RegExp(`${writtenRoot}(?!/)`, 'g'), baseUrl.replace(/\/v1$/, ''))
  return { path: `/docs/${name.slice(0, -'.md'.length)}`, title, summary: firstSentence(markdown), markdown: here }
}

function firstSentence(markdown: string): string {
  // Splitting at the fences leaves prose at even indexes and code at odd ones.
  const prose = `\n${markdown}`.split('\n```').filter((_, index) => index % 2 === 0)
  const paragraphs = prose
    .join('\n')
    .trim()
    .split(/\n{2,}/)
  const paragraph = paragraphs.find((text) => !/^[#|-]/.test(text)) ?? ''
  const [sentence = ''] = /^.*?[.:](?= |$)/s.exec(paragraph.replaceAll('\n', ' ')) ?? [paragraph]
  return sentence.replace(/:$/, '.')
}

/**
 * Resolves a link in a document to another document or an external page; undefined for files that are not published
 * here.
 */
export function docLink(href: string): string | undefined {
  if (/^(?:https:\/\/|#|\/)/.test(href)) return href
  const [, name, anchor = ''] = /^(?:\.\/)?([\w-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
  return name === undefined ? undefined : `/docs/${name}${anchor}`
}
