import { html } from 'hono/html'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { inlineHtml } from '../components/markdown-inline.ts'
import { renderMarkdown } from '../components/markdown.ts'
import { docLink } from '../docs/doc-files.ts'
import type { Doc } from '../docs/doc.ts'
import { maxQueryCharacters } from '../docs/search-index.ts'
import { PageError } from '../http/page-error.ts'
import type { PageRoute } from '../http/route.ts'
import { textAnswer } from '../http/text-answer.ts'
import type { Visit } from '../http/visit.ts'

const paths = [
  '/docs',
  '/docs.md',
  '/docs/:page',
  '/docs/clients/:page',
  '/docs/contract/:page',
  '/docs/errors/:code',
] as const

const home = { path: '/docs', name: 'Documentation' } as const

export const docsRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/docs/search', access: 'public', handle: showFound },
  ...paths.map((path): PageRoute => ({ method: 'GET', path, access: 'public', handle: showDoc })),
  {
    method: 'GET',
    path: '/llms.txt',
    access: 'public',
    handle: ({ deps }) => textAnswer('text/plain', deps.library.llmsTxt()),
  },
]

/** A documentation page; as Markdown if the path ends in `.md`. */
async function showDoc(visit: Visit): Promise<Response> {
  const { path, deps } = visit
  const isMarkdown = path.endsWith('.md')
  const doc = deps.library.find(isMarkdown ? path.slice(0, -'.md'.length) : path)
  if (doc === undefined) throw new PageError('not_found')
  if (isMarkdown) return textAnswer('text/markdown', `# ${doc.title}\n\n${doc.markdown}\n`)
  return page(visit, {
    title: doc.title,
    summary: plainText(doc.summary),
    above: wayTo(visit, doc),
    ...(doc.path.startsWith('/docs/errors/') && { lead: inlineHtml(doc.summary, docLink) }),
    body: besidePages(
      visit,
      html`${renderMarkdown(doc.markdown, docLink)}
        <p class="side"><a href="${doc.path}.md">This page as Markdown</a> · <a href="/llms.txt">llms.txt</a></p>
        ${neighbors(visit, doc)}`,
    ),
  })
}

/** Search results with excerpts; only the form if the query is empty. */
function showFound(visit: Visit): Promise<Response> {
  const query = (visit.query.get('q') ?? '').trim().slice(0, maxQueryCharacters)
  const found = visit.deps.library.searchIndex.find(query)
  const count = found.length === 1 ? '1 page' : `${found.length} pages`
  const none = html`No page contains all of these words: <strong>${query}</strong>. Try fewer or different words.`
  return page(visit, {
    title: 'Search the documentation',
    above: breadcrumbs(home),
    body: besidePages(
      visit,
      html`${query === '' ? '' : html`<p role="status">${found.length === 0 ? none : html`${count} found.`}</p>`}
        <ol class="found">
          ${found.map(
            ({ href, title, heading, excerpt }) =>
              html`<li>
                <a href="${href}">${title}${heading === '' ? '' : html`: ${heading}`}</a>
                <p>${excerpt}</p>
              </li>`,
          )}
        </ol>`,
      query,
    ),
  })
}

/** Wraps a documentation page with the search form and the list of all pages. */
function besidePages({ deps, path }: Visit, body: Html, query = ''): Html {
  const list = (docs: readonly Doc[]): Html =>
    html`<ul>
      ${docs.map(({ path: to, title }) => {
        const isWithin = path === to || path.startsWith(`${to}/`)
        const below = isWithin ? deps.library.pagesBelow(to) : []
        const mark = path === to ? html`aria-current="page"` : ''
        return html`<li><a href="${to}" ${mark}>${title}</a>${below.length === 0 ? '' : list(below)}</li>`
      })}
    </ul>`
  return html`<div class="docs">
    <div>
      <form class="search" role="search" method="get" action="/docs/search">
        <label class="unseen" for="search-words">Search the documentation</label>
        <input
          id="search-words"
          name="q"
          type="search"
          value="${query}"
          placeholder="Search the documentation"
          maxlength="${maxQueryCharacters}"
        />
        <button class="secondary">Search</button>
        <a class="to-pages" href="#all-pages">All pages</a>
      </form>
      ${body}
    </div>
    <nav id="all-pages" aria-label="Documentation">
      <a href="/docs" ${path === '/docs' ? html`aria-current="page"` : ''}>Documentation</a>
      ${list(deps.library.topPages('users'))}
      <p>For operators</p>
      ${list(deps.library.topPages('operators'))}
    </nav>
  </div>`
}

/** Links to the previous and the next page. */
function neighbors({ deps }: Visit, { path }: Doc): Html {
  const { previous, next } = deps.library.around(path)
  return html`<nav class="neighbors" aria-label="Previous and next page">
    ${previous === undefined ? '' : html`<a rel="prev" href="${previous.path}">← ${previous.title}</a>`}
    ${next === undefined ? '' : html`<a rel="next" href="${next.path}">${next.title} →</a>`}
  </nav>`
}

/** Markdown without its markup. */
function plainText(markdown: string): string {
  return markdown.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, '$1').replaceAll(/[`*]/g, '')
}

/** Breadcrumbs from the start page of the documentation to this page. */
function wayTo({ deps }: Visit, { path }: Doc): Html | undefined {
  if (path === home.path) return undefined
  const parent = deps.library.find(path.slice(0, path.lastIndexOf('/')))
  return parent === undefined || parent.path === home.path
    ? breadcrumbs(home)
    : breadcrumbs(home, { path: parent.path, name: parent.title })
}
