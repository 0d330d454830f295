import { html } from 'hono/html'
import { assetUrl, type AssetName } from '../http/assets.ts'
import { csrfField } from '../http/csrf.ts'
import type { SignedIn, Visit } from '../http/visit.ts'
import type { Html } from './html.ts'
import { noticeOf } from './notices.ts'

/** A page and its metadata. */
export interface Page {
  /** The h1, and part of the document title. */
  readonly title: string
  /** A sentence below the heading. */
  readonly lead?: string | Html
  /** Plain-text meta description. Defaults to the lead if that is a string. */
  readonly summary?: string
  /** Shown above the heading, such as breadcrumbs. */
  readonly above?: Html | undefined
  readonly body: Html
  readonly status?: number
  /** A form error; the document title then starts with "Error". */
  readonly problem?: string | undefined
  /** Extra files for this page only. */
  readonly also?: { readonly style: AssetName; readonly script: AssetName }
  /** For pages with a single form. */
  readonly narrow?: boolean
}

/** The navigation for signed-in visitors. */
const navigation: readonly { readonly path: string; readonly name: string }[] = [
  { path: '/account', name: 'Account' },
  { path: '/account/keys', name: 'Keys' },
  { path: '/account/upstreams', name: 'Providers' },
  { path: '/playground', name: 'Playground' },
  { path: '/usage', name: 'Usage' },
  { path: '/activity', name: 'Activity' },
  { path: '/billing', name: 'Billing' },
]

/** Public pages: in the header for signed-out visitors, and in the footer of every page. */
const publicPages: readonly { readonly path: string; readonly name: string }[] = [
  { path: '/docs', name: 'Docs' },
  { path: '/models', name: 'Models' },
  { path: '/pricing', name: 'Pricing' },
]
const footerPages: typeof publicPages = [
  ...publicPages,
  { path: '/connect', name: 'Connect' },
  { path: '/docs/api', name: 'API' },
  { path: '/status', name: 'Status' },
  { path: '/support', name: 'Support' },
  { path: '/leaked-key', name: 'Found a key?' },
]

/** The default meta description. */
const slogan = 'svc-router: one key, many models.'

/** Renders a complete page as a response. */
export async function page(
  visit: Pick<Visit, 'path' | 'query' | 'signedIn' | 'requestId'>,
  it: Page,
): Promise<Response> {
  return frame(visit.query, it, { titleSuffix: 'svc-router', header: header(visit), footer })
}

/** The header, footer, and title suffix around a page. */
export interface Frame {
  /** Follows the page's title in the document title. */
  readonly titleSuffix: string
  readonly header: Html
  readonly footer: Html
  /** The class of the body element, for styling. */
  readonly className?: string
}

/** Renders a complete page in a frame. */
export async function frame(query: URLSearchParams, it: Page, around: Frame): Promise<Response> {
  const text = await document(query, it, around)
  return new Response(String(text), {
    status: it.status ?? 200,
    headers: { 'Content-Type': 'text/html; charset=utf-8' },
  })
}

function document(query: URLSearchParams, it: Page, around: Frame): Html {
  const { title, lead, above, body, problem, also } = it
  const summary = it.summary ?? (typeof lead === 'string' ? lead : slogan)
  const notice = problem === undefined ? noticeOf(query) : undefined
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${problem === undefined ? '' : 'Error: '}${title} · ${around.titleSuffix}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="description" content="${summary}" />
        <meta name="color-scheme" content="light dark" />
        <link rel="icon" href="${assetUrl('icon.svg')}" type="image/svg+xml" />
        <link rel="stylesheet" href="${assetUrl('style.css')}" />
        <script type="module" src="${assetUrl('islands.js')}"></script>
        ${
          also === undefined
            ? ''
            : html`<link rel="stylesheet" href="${assetUrl(also.style)}" />
                <script type="module" src="${assetUrl(also.script)}"></script>`
        }
      </head>
      <body${around.className === undefined ? '' : html` class="${around.className}"`}>
        <a class="skip" href="#main">Skip to content</a>
        ${around.header}
        <main id="main" tabindex="-1" class="${it.narrow === true ? 'narrow' : ''}">
          ${notice === undefined ? '' : html`<p class="notice" role="status">${notice}</p>`} ${above ?? ''}
          <h1>${title}</h1>
          ${lead === undefined ? '' : html`<p class="lead">${lead}</p>`}
          ${problem === undefined ? '' : html`<p class="problem" role="alert">${problem}</p>`} ${body}
        </main>
        ${around.footer}
      </body>
    </html>`
}

const footer = html`<footer>
  <nav aria-label="All pages">${footerPages.map(({ path, name }) => html`<a href="${path}">${name}</a> `)}</nav>
  <p>${slogan}</p>
</footer>`

function header({ path, signedIn }: Pick<Visit, 'path' | 'signedIn'>): Html {
  return html`<header>
    <a class="brand" href="/"><img src="${assetUrl('icon.svg')}" alt="" width="24" height="24" /> svc-router</a>
    <nav aria-label="Main">
      ${
        signedIn === undefined
          ? html`${publicPages.map((entry) => navigationLink(path, entry, publicPages))}
              <a href="/sign-in" ${currentMark(path, '/sign-in')}>Sign in</a>`
          : navigation.map((entry) => navigationLink(path, entry, navigation))
      }
    </nav>
    ${
      signedIn === undefined
        ? html`<a class="button" href="/account/setup" ${currentMark(path, '/account/setup')}>Get a key</a>`
        : html`<form method="post" action="/sign-out">
            ${csrfInput(signedIn)}<button class="quiet">Sign out</button>
          </form>`
    }
  </header>`
}

/** A page that is not in the navigation belongs to the entry with the longest matching path prefix. */
function navigationLink(path: string, entry: (typeof navigation)[number], all: typeof navigation): Html {
  const [nearest] = all
    .filter((one) => path.startsWith(`${one.path}/`))
    .toSorted((a, b) => b.path.length - a.path.length)
  const isIn = nearest === entry && !all.some((one) => one.path === path)
  const mark = isIn ? html`aria-current="true"` : currentMark(path, entry.path)
  return html`<a href="${entry.path}" ${mark}>${entry.name}</a>`
}

function currentMark(path: string, current: string): Html | '' {
  return path === current ? html`aria-current="page"` : ''
}

/** The hidden CSRF field that every form of a signed-in page contains, for accounts and in the console. */
export function csrfInput(signedIn: Pick<SignedIn, 'csrfToken'> | undefined): Html | '' {
  return signedIn === undefined ? '' : html`<input type="hidden" name="${csrfField}" value="${signedIn.csrfToken}" />`
}
