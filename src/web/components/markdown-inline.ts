import { html } from 'hono/html'
import type { Html } from './html.ts'

const shapes = /`([^`]+)`|\[((?:[^[\]`]|`[^`]*`)+)\]\(([^)\s]+)\)|\*\*([^*]+)\*\*/g

/** Renders inline Markdown: code, links, and emphasis. Everything else is escaped text. */
export function inlineHtml(text: string, linkTo: (href: string) => string | undefined): Html {
  const parts: (Html | string)[] = []
  let from = 0
  for (const match of text.matchAll(shapes)) {
    const [all, code, linked, href, strong] = match
    parts.push(text.slice(from, match.index))
    from = match.index + all.length
    if (code !== undefined) parts.push(html`<code>${code}</code>`)
    else if (strong !== undefined) parts.push(html`<strong>${inlineHtml(strong, linkTo)}</strong>`)
    else
      parts.push(
        link(
          inlineHtml(linked!, () => undefined),
          linkTo(href!),
        ),
      )
  }
  parts.push(text.slice(from))
  return html`${parts}`
}

function link(words: Html, href: string | undefined): Html {
  return href === undefined ? words : html`<a href="${href}">${words}</a>`
}

/** The text without inline Markdown. */
export function plainText(text: string): string {
  return text.replaceAll(shapes, (_all, code?: string, linked?: string, _href?: string, strong?: string) =>
    plainText(code ?? linked ?? strong ?? ''),
  )
}
