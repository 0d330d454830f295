// Renders the Markdown of an answer as elements. Text is never parsed as HTML, and the time is linear in its length.

import { make, table } from './playground-make.js'

/** Longer answers are shown as plain text. */
const maxCharacters = 100_000
/** Deeper nested lists and quotes are flattened to this level. */
const maxDepth = 6

// Each part of the pattern stops at its own closing mark, so a mark that is never closed costs one scan.
const inlineShapes = new RegExp(
  [
    /\\([\\`*_[\](){}#+.!|~<>-])/,
    /`([^`]+)`/,
    /\[([^[\]]+)\]\((https?:\/\/(?:[^\s()<>]|\([^\s()<>]*\))+)\)/,
    /\*\*(?=\S)([^*]*[^*\s])\*\*/,
    /(?<!\w)__(?=\S)([^_]*[^_\s])__(?!\w)/,
    /\*(?=\S)([^*]*[^*\s])\*/,
    /(?<!\w)_(?=\S)([^_]*[^_\s])_(?!\w)/,
    /(https?:\/\/[^\s"'<>()[\]*`]+[^\s"'<>()[\]*`.,;:!?])/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)
/** The optional closing marks of a heading. The lookbehind keeps matching linear for long runs of spaces. */
const headingEnd = /(?<![ \t])[ \t]+#+$/
const fenceShape = /^(```+|~~~+)/
const headingShape = /^(#{1,6})[ \t]+(?![ \t])(.*)$/
const itemShape = /^(?:[-*+]|(\d{1,9})[.)])[ \t]+/
const ruleShape = /^(?:-[ \t]*){3,}$|^(?:\*[ \t]*){3,}$|^(?:_[ \t]*){3,}$/
const tableRuleShape = /^[|:\- \t]+$/

/**
 * Renders Markdown as elements.
 * @param {string} text
 */
export function markdown(text) {
  if (text.length > maxCharacters) return [plainText(text)]
  const root = make('div', { class: 'markdown' })
  new Blocks(root).read(text.split(/\r?\n/))
  return [root]
}

/**
 * The text without rendering.
 * @param {string} text
 */
export const plainText = (text) => make('div', { class: 'text' }, text)

/**
 * An element with children, appended one by one because a call can take only so many arguments.
 * @template {HTMLElement} T
 * @param {T} element
 * @param {(Node | string)[]} nodes
 */
function fill(element, nodes) {
  for (const node of nodes) if (node !== '') element.append(node)
  return element
}

/**
 * A link that opens in a new tab, so that the conversation is not lost. Only http and https URLs become links.
 * @param {string} href
 * @param {(Node | string)[]} children
 */
function link(href, children) {
  const isWeb = URL.canParse(href) && ['http:', 'https:'].includes(new URL(href).protocol)
  return isWeb
    ? fill(make('a', { href, target: '_blank', rel: 'noopener noreferrer nofollow' }), children)
    : fill(make('span'), children)
}

/**
 * Inline emphasis, code, and links. `depth` limits nesting.
 * @param {string} text
 * @returns {(Node | string)[]}
 */
function inline(text, depth = 0) {
  if (depth > 3) return [text]
  /** @type {(Node | string)[]} */
  const parts = []
  let from = 0
  for (const match of text.matchAll(inlineShapes)) {
    const [all, escaped, code, words, href, strong, strongToo, emphasis, emphasisToo, address] = match
    parts.push(text.slice(from, match.index))
    from = match.index + all.length
    /** @param {string} inner */
    const within = (inner) => inline(inner, depth + 1)
    if (escaped !== undefined) parts.push(escaped)
    else if (code !== undefined) parts.push(make('code', {}, code))
    else if (href !== undefined) parts.push(link(href, inline(words ?? '', 3)))
    else if (address !== undefined) parts.push(depth === 3 ? address : link(address, [address]))
    else {
      const isStrong = (strong ?? strongToo) !== undefined
      parts.push(fill(make(isStrong ? 'strong' : 'em'), within(strong ?? strongToo ?? emphasis ?? emphasisToo ?? '')))
    }
  }
  parts.push(text.slice(from))
  return parts
}

/**
 * Cells of a table's row.
 * @param {string} line
 */
function cellsOf(line) {
  const cells = line
    .trim()
    .replace(/^\|/, '')
    .split(/(?<!\\)\|/)
  if (cells.at(-1)?.trim() === '') cells.pop()
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** @typedef {{ indent: number, element: HTMLElement, item: HTMLElement }} List */

/** Reads the text line by line and appends elements to the open lists. */
class Blocks {
  #root
  /**
   * The open lists, outermost first: the indent of their items and the element of the last item.
   * @type {List[]}
   */
  #lists = []
  /**
   * Lines of the open paragraph.
   * @type {string[]}
   */
  #lines = []
  #lastLevel = 2

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root
  }

  /** @param {string[]} lines */
  read(lines) {
    for (let at = 0; at < lines.length; at += 1) at = this.#readAt(lines, at)
    this.#endParagraph()
  }

  /**
   * Reads the block that starts at a line; returns the index of its last line.
   * @param {string[]} lines
   * @param {number} at
   */
  #readAt(lines, at) {
    const whole = lines[at] ?? ''
    const line = whole.trim()
    const indent = whole.length - whole.trimStart().length
    const fence = fenceShape.exec(line)?.[1]
    const heading = headingShape.exec(line)
    const item = itemShape.exec(line)
    if (line === '') this.#endParagraph()
    else if (fence !== undefined) return this.#readCode(lines, at, fence, indent)
    else if (ruleShape.test(line)) this.#add(indent, make('hr'))
    else if (heading !== null) this.#addHeading(indent, heading)
    else if (item !== null) this.#addItem(indent, line, item)
    else if (line.startsWith('>')) return this.#readQuote(lines, at, indent)
    else if (line.includes('|') && this.#isTableRule(lines[at + 1])) return this.#readTable(lines, at, indent)
    else {
      if (this.#lines.length === 0) this.#closeLists(indent)
      this.#lines.push(line)
    }
    return at
  }

  /** @param {string | undefined} line */
  #isTableRule(line) {
    return line !== undefined && line.includes('|') && line.includes('-') && tableRuleShape.test(line)
  }

  /** @param {string[]} lines @param {number} at @param {string} fence @param {number} indent */
  #readCode(lines, at, fence, indent) {
    /** @param {string} line */
    const isEnd = (line) => line.startsWith(fence) && fenceShape.test(line)
    let end = at + 1
    while (end < lines.length && !isEnd((lines[end] ?? '').trim())) end += 1
    const code = lines
      .slice(at + 1, end)
      .map((line) => line.slice(Math.min(indent, line.length - line.trimStart().length)))
    this.#add(indent, make('pre', { tabindex: '0' }, make('code', {}, code.join('\n'))))
    return end
  }

  /** @param {string[]} lines @param {number} at @param {number} indent */
  #readQuote(lines, at, indent) {
    let end = at
    while (lines[end]?.trim().startsWith('>')) end += 1
    // Nested quotes are flattened into one.
    const quoted = lines.slice(at, end).map((line) => line.trim().replace(/^(?:>\s*)*> ?/, ''))
    const quote = make('blockquote')
    new Blocks(quote).read(quoted)
    this.#add(indent, quote)
    return end - 1
  }

  /** @param {string[]} lines @param {number} at @param {number} indent */
  #readTable(lines, at, indent) {
    let end = at + 2
    while (lines[end]?.includes('|')) end += 1
    const heads = cellsOf(lines[at] ?? '')
    /** @param {string} line */
    const cells = (line) =>
      cellsOf(line)
        .slice(0, heads.length)
        .map((cell) => fill(make('span'), inline(cell)))
    const rows = lines.slice(at + 2, end).map(cells)
    this.#add(
      indent,
      table(
        `Table: ${heads.join(', ')}`,
        heads.map((head) => fill(make('span'), inline(head))),
        rows,
      ),
    )
    return end - 1
  }

  /**
   * Headings in an answer are below those of the page in the outline, without skipping levels.
   * @param {number} indent
   * @param {RegExpExecArray} match
   */
  #addHeading(indent, [, marks = '', text = '']) {
    this.#lastLevel = Math.min(marks.length + 2, this.#lastLevel + 1, 6)
    this.#add(indent, fill(make(/** @type {'h3'} */ (`h${this.#lastLevel}`)), inline(text.replace(headingEnd, ''))))
  }

  /** @param {number} indent @param {string} line @param {RegExpExecArray} match */
  #addItem(indent, line, [mark, number]) {
    const tag = number === undefined ? 'ul' : 'ol'
    this.#endParagraph()
    this.#closeLists(indent, indent)
    let list = this.#lists.at(-1)
    if (list === undefined || (indent > list.indent && this.#lists.length < maxDepth)) {
      list = undefined
    } else if (list.element.localName !== tag) {
      this.#lists.pop()
      list = undefined
    }
    if (list === undefined) {
      const element = make(tag, number === undefined || number === '1' ? {} : { start: String(Number(number)) })
      this.#place().append(element)
      list = { indent, element, item: make('li') }
      this.#lists.push(list)
    } else list.item = make('li')
    list.element.append(list.item)
    this.#lines.push(line.slice(mark.length))
  }

  /**
   * Closes the lists that a line with this indent is not part of; `itemIndent` is the indent of its own list item, if
   * any.
   * @param {number} indent
   * @param {number} [itemIndent]
   */
  #closeLists(indent, itemIndent) {
    /** @param {List | undefined} list */
    const isOver = (list) =>
      list !== undefined && (itemIndent === undefined ? indent <= list.indent : itemIndent < list.indent)
    while (isOver(this.#lists.at(-1))) this.#lists.pop()
  }

  #place() {
    return this.#lists.at(-1)?.item ?? this.#root
  }

  /** @param {number} indent @param {HTMLElement} element */
  #add(indent, element) {
    this.#endParagraph()
    this.#closeLists(indent)
    this.#place().append(element)
  }

  #endParagraph() {
    if (this.#lines.length === 0) return
    const words = this.#lines.flatMap((line, index) => (index === 0 ? inline(line) : ['\n', ...inline(line)]))
    this.#lines = []
    const place = this.#place()
    if (place.localName === 'li' && place.childNodes.length === 0) fill(place, words)
    else place.append(fill(make('p'), words))
  }
}
