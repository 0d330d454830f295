import { readdirSync, readFileSync } from 'node:fs'
import type { Doc } from './doc.ts'
import { splitDoc } from './split-doc.ts'

const folder = new URL('../../../docs/', import.meta.url)
/** Those that most people look for, first; any other behind them, by name. */
const first = ['clients.md', 'fusion.md', 'upstreams.md', 'contract.md']
/** Documents that are too long for one page. */
const split = ['clients.md', 'contract.md']
/** What the files write down for a service on the reader's own machine. */
const writtenBaseUrl = 'http://127.0.0.1:8787/v1'
const writtenRoot = writtenBaseUrl.slice(0, -'/v1'.length)

/** The project's documents, read once at the start, with this service's address in place of the written one. */
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
  // Every other piece between two fences is code.
  const prose = `\n${markdown}`.split('\n```').filter((_, index) => index % 2 === 0)
  const paragraphs = prose
    .join('\n')
    .trim()
    .split(/\n{2,}/)
  const paragraph = paragraphs.find((text) => !/^[#|-]/.test(text)) ?? ''
  const [sentence = ''] = /^.*?[.:](?= |$)/s.exec(paragraph.replaceAll('\n', ' ')) ?? [paragraph]
  return sentence.replace(/:$/, '.')
}

/** Where a link of a document leads here: to another of them, or out. Files that are not shown here have no link. */
export function docLink(href: string): string | undefined {
  if (/^(?:https:\/\/|#|\/)/.test(href)) return href
  const [, name, place = ''] = /^(?:\.\/)?([\w-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
  return name === undefined ? undefined : `/docs/${name}${place}`
}
