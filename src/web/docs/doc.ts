/** A documentation page. The same Markdown is rendered as HTML and served as is. */
export interface Doc {
  /** `/docs/clients`; with the suffix `.md` it serves the Markdown source. */
  readonly path: string
  readonly title: string
  /** One sentence about the page, as Markdown. */
  readonly summary: string
  /** Everything below the title. Links to our own pages are absolute paths. */
  readonly markdown: string
}
