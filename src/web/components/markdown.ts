import { html } from 'hono/html'
import { codeSample } from './code-sample.ts'
import type { Html } from './html.ts'
import { inlineHtml, plainText } from './markdown-inline.ts'

type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'list'; readonly ordered: boolean; readonly items: readonly (readonly Block[])[] }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'paragraph' | 'quote'; readonly text: string }

const headingShape = /^(#{2,4}) +(\S.*)$/
const bulletShape = /^- +((?:\S.*)?)$/
const numberShape = /^\d{1,3}\. +((?:\S.*)?)$/
const linkAlone = /^\[[^\]]+\]\([^)\s]+\)$/

/**
 * Renders our Markdown as HTML: headings, paragraphs, lists, tables, and code, as used in docs/ and generated pages.
 * A paragraph that consists of only a link becomes a button. Everything is escaped, including raw HTML.
 * `linkTo` maps a link target to a URL on this site; undefined renders the text without a link.
 */
export function renderMarkdown(markdown: string, linkTo: (href: string) => string | undefined): Html {
  const names = new Map<string, number>()
  let samples = 0
  let tables = 0
  const inline = (text: string): Html => inlineHtml(text, linkTo)
  const write = (block: Block): Html => {
    switch (block.kind) {
      case 'heading':
        return heading(block.level, nameOf(plainText(block.text), names), inline(block.text))
      case 'code':
        return codeSample(`sample-${(samples += 1)}`, block.text)
      case 'list': {
        const items = block.items.map((item) => html`<li>${writeItem(item)}</li>`)
        return block.ordered
          ? html`<ol>
              ${items}
            </ol>`
          : html`<ul>
              ${items}
            </ul>`
      }
      case 'table':
        return table(
          (tables += 1),
          block.head.map(inline),
          block.rows.map((row) => row.map(inline)),
        )
      case 'quote':
        return html`<blockquote><p>${inline(block.text)}</p></blockquote>`
      case 'paragraph':
        return linkAlone.test(block.text)
          ? html`<p class="go">${inline(block.text)}</p>`
          : html`<p>${inline(block.text)}</p>`
    }
  }
  // An item that is a single paragraph needs no `<p>`.
  const writeItem = ([first, ...rest]: readonly Block[]): Html =>
    html`${first?.kind === 'paragraph' ? inline(first.text) : first === undefined ? '' : write(first)}${rest.map(write)}`
  return html`<div class="prose">${blocksOf(markdown).map(write)}</div>`
}

/** The plain text of a document under one heading. */
interface PlainSection {
  /** The anchor of the heading; undefined before the first heading. */
  readonly id: string | undefined
  readonly heading: string
  readonly text: string
  /** Code samples, which are not part of `text`. */
  readonly code: string
}

/** Splits a document at its headings into plain text, for the search index. */
export function sectionsOf(markdown: string): readonly PlainSection[] {
  const names = new Map<string, number>()
  const sections: { id: string | undefined; heading: string; texts: string[]; codes: string[] }[] = [
    { id: undefined, heading: '', texts: [], codes: [] },
  ]
  for (const block of blocksOf(markdown)) {
    if (block.kind === 'heading') {
      const heading = plainText(block.text)
      sections.push({ id: nameOf(heading, names), heading, texts: [], codes: [] })
    } else if (block.kind === 'code') sections.at(-1)!.codes.push(block.text)
    else sections.at(-1)!.texts.push(textOf(block))
  }
  return sections.map(({ texts, codes, ...section }) => ({ ...section, text: texts.join(' '), code: codes.join(' ') }))
}

function textOf(block: Block): string {
  if (block.kind === 'list') return block.items.map((item) => item.map(textOf).join(' ')).join(' ')
  if (block.kind === 'table') return [block.head, ...block.rows].flat().map(plainText).join(' ')
  return block.kind === 'code' ? block.text : plainText(block.text)
}

function heading(level: number, id: string, text: Html): Html {
  if (level === 2) return html`<h2 id="${id}">${text}</h2>`
  return level === 3 ? html`<h3 id="${id}">${text}</h3>` : html`<h4 id="${id}">${text}</h4>`
}

function table(number: number, head: readonly Html[], rows: readonly (readonly Html[])[]): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table ${number}">
    <table>
      <thead>
        <tr>
          ${head.map((cell) => html`<th scope="col">${cell}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell) => html`<td>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** The anchor of a heading, in the form most Markdown renderers use. */
export function headingId(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** The same, with a number appended if the page already uses it. */
function nameOf(text: string, taken: Map<string, number>): string {
  const name = headingId(text)
  const count = taken.get(name) ?? 0
  taken.set(name, count + 1)
  return count === 0 ? name : `${name}-${count}`
}

function blocksOf(markdown: string): Block[] {
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at]!
    if (line.trim() === '') at += 1
    else {
      const { block, next } = readBlock(lines, at)
      blocks.push(block)
      at = next
    }
  }
  return blocks
}

interface Read {
  readonly block: Block
  /** The first line after the block. */
  readonly next: number
}

function readBlock(lines: readonly string[], at: number): Read {
  const line = lines[at]!
  const heading = headingShape.exec(line)
  if (heading !== null)
    return { block: { kind: 'heading', level: heading[1]!.length, text: heading[2]! }, next: at + 1 }
  if (line.startsWith('```')) return readCode(lines, at)
  if (line.startsWith('|')) return readTable(lines, at)
  if (line.startsWith('> ')) return { block: { kind: 'quote', text: line.slice(2) }, next: at + 1 }
  if (bulletShape.test(line)) return readList(lines, at, bulletShape, false)
  if (numberShape.test(line)) return readList(lines, at, numberShape, true)
  const end = endOf(lines, at + 1, (each) => each.trim() === '' || startsBlock(each))
  return { block: { kind: 'paragraph', text: join(lines.slice(at, end)) }, next: end }
}

function startsBlock(line: string): boolean {
  return headingShape.test(line) || line.startsWith('```') || line.startsWith('|') || bulletShape.test(line)
}

function readCode(lines: readonly string[], at: number): Read {
  const end = endOf(lines, at + 1, (line) => line.startsWith('```'))
  return { block: { kind: 'code', text: lines.slice(at + 1, end).join('\n') }, next: end + 1 }
}

function readList(lines: readonly string[], at: number, shape: RegExp, ordered: boolean): Read {
  const items: (readonly Block[])[] = []
  let next = at
  for (let first = shape.exec(lines[at]!); first !== null; first = shape.exec(lines[next] ?? '')) {
    // Indented lines continue the item, also after an empty line.
    const end = endOf(lines, next + 1, (line, index) => {
      const shown = line.trim() === '' ? (lines[index + 1] ?? '') : line
      return !/^ {2,}\S/.test(shown)
    })
    const indent = lines[next]!.length - first[1]!.length
    const rest = lines.slice(next + 1, end).map((line) => line.replace(new RegExp(`^ {1,${indent}}`), ''))
    items.push(blocksOf([first[1]!, ...rest].join('\n')))
    next = lines[end]?.trim() === '' && shape.test(lines[end + 1] ?? '') ? end + 1 : end
  }
  return { block: { kind: 'list', ordered, items }, next }
}

function readTable(lines: readonly string[], at: number): Read {
  const end = endOf(lines, at + 1, (line) => !line.startsWith('|'))
  const [head = [], , ...rows] = lines.slice(at, end).map(cellsOf)
  return { block: { kind: 'table', head, rows }, next: end }
}

function cellsOf(line: string): string[] {
  const cells = line.trim().split(/(?<!\\)\|/)
  return cells.slice(1, -1).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

function endOf(lines: readonly string[], from: number, isBehind: (line: string, index: number) => boolean): number {
  const found = lines.findIndex((line, index) => index >= from && isBehind(line, index))
  return found < 0 ? lines.length : found
}

function join(lines: readonly string[]): string {
  return lines.map((line) => line.trim()).join(' ')
}
