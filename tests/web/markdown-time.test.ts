import { afterAll, beforeAll, expect, test, vi } from 'vitest'

const maxCharacters = 100_000
const maxMs = 1000
/** Texts whose markup is never closed, or is nested as deeply as the text is long. */
const hostile = [
  '*',
  '**a',
  '_a ',
  '`',
  '[',
  '[a](http://x',
  '[a](http://(',
  '> ',
  '>\t',
  '- ',
  '\n  - a',
  '| a ',
  '#',
  '~~~\n',
  'http://.',
  '\\',
  '\\*',
  '|\n',
  'a|\n-|-\n',
  '- - ',
  '* a\n1. a\n',
].map((piece) => piece.repeat(Math.floor(maxCharacters / piece.length)))
const spaced = ['# a', 'a', '|a', '- a'].map((start) => `${start}${' '.repeat(maxCharacters - 10)}#b`)

/** The part of an element that the Markdown renderer uses. */
class Element {
  readonly childNodes: unknown[] = []
  readonly localName: string

  constructor(localName: string) {
    this.localName = localName
  }

  append(...nodes: readonly unknown[]): void {
    for (const node of nodes) this.childNodes.push(node)
  }

  setAttribute(): void {}
}

// In Node instead of a browser, because engines run different patterns in linear time, and Node's runs fewer.
let markdown: (text: string) => readonly unknown[]
beforeAll(async () => {
  vi.stubGlobal('document', { createElement: (name: string) => new Element(name) })
  const { href } = new URL('../../src/web/assets/playground-markdown.js', import.meta.url)
  ;({ markdown } = (await import(href)) as { markdown: typeof markdown })
})
afterAll(() => vi.unstubAllGlobals())

test.each([...hostile, ...spaced].map((text) => [text.slice(0, 10), text] as const))(
  'an answer of 100,000 characters that starts with %j is rendered within a second',
  (_, text) => {
    const startedAt = performance.now()
    expect(markdown(text).length).toBe(1)
    expect(performance.now() - startedAt).toBeLessThan(maxMs)
  },
  60_000,
)
