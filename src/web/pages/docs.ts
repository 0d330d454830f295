import { html } from 'hono/html'
import type { Doc } from '../docs/doc.ts'
import { docLink } from '../docs/doc-files.ts'
import { page, type Html } from '../layout.ts'
import { inlineHtml } from '../markdown-inline.ts'
import { renderMarkdown } from '../markdown.ts'
import { PageRefusal } from '../refusals.ts'
import type { Route } from '../route.ts'
import { textAnswer } from '../text-answer.ts'
import type { Visit } from '../visit.ts'
import { trail } from '../trail.ts'

const paths = ['/docs', '/docs.md', '/docs/:page', '/docs/errors/:code'] as const

export const docsRoutes: readonly Route[] = [
  ...paths.map((path): Route => ({ method: 'GET', path, access: 'public', handle: showDoc })),
  {
    method: 'GET',
    path: '/llms.txt',
    access: 'public',
    handle: ({ parts }) => textAnswer('text/plain', parts.library.llmsTxt()),
  },
]

/** A page of the documentation; with `.md` behind its path as Markdown. */
async function showDoc(visit: Visit): Promise<Response> {
  const { path, parts } = visit
  const isMarkdown = path.endsWith('.md')
  const doc = parts.library.find(isMarkdown ? path.slice(0, -'.md'.length) : path)
  if (doc === undefined) throw new PageRefusal('not_found')
  if (isMarkdown) return textAnswer('text/markdown', `# ${doc.title}\n\n${doc.markdown}\n`)
  return page(visit, {
    title: doc.title,
    summary: plainText(doc.summary),
    above: wayTo(doc),
    ...(doc.path.startsWith('/docs/errors/') && { lead: inlineHtml(doc.summary, docLink) }),
    body: html`${renderMarkdown(doc.markdown, docLink)}
      <p class="side"><a href="${doc.path}.md">This page as Markdown</a> · <a href="/llms.txt">llms.txt</a></p>`,
  })
}

/** Markdown without its marks. */
function plainText(markdown: string): string {
  return markdown.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, '$1').replaceAll(/[`*]/g, '')
}

/** The way from the first page of the documentation to this one. */
function wayTo({ path }: Doc): Html | undefined {
  if (path === '/docs') return undefined
  const first = { path: '/docs', name: 'Documentation' }
  return path.startsWith('/docs/errors/') ? trail(first, { path: '/docs/errors', name: 'Errors' }) : trail(first)
}
