/** A page of the documentation, which is shown as HTML and given as Markdown: one text for both. */
export interface Doc {
  /** `/docs/clients`; with `.md` behind it the same as Markdown. */
  readonly path: string
  readonly title: string
  /** One sentence on what it is about, Markdown. */
  readonly summary: string
  /** All below the title. Links to our own pages are absolute paths. */
  readonly markdown: string
}
