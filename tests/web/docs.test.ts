import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { errorCodes } from '../../src/domain/error-message.ts'
import { errorCatalog } from '../../src/domain/errors.ts'
import { headingId, renderMarkdown } from '../../src/web/components/markdown.ts'
import { socketCodes, streamCode } from '../../src/web/docs/client-advice.ts'
import { docLink } from '../../src/web/docs/doc-files.ts'
import { exampleOf } from '../../src/web/docs/error-docs.ts'
import { SearchIndex } from '../../src/web/docs/search-index.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'
import { maxPageBytes } from './max-page-bytes.ts'

let service: Service
let visitor: Visitor
let owner: Visitor
beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
  owner = new Visitor(service.config.appUrl)
  const { token } = await openSession({ ...service.accountsDeps, store: service.store }, service.account.id, {
    method: 'link',
    agent: 'Tests',
  })
  owner.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

const read = async (path: string): Promise<string> => {
  const response = await visitor.get(path)
  expect(response.status, path).toBe(200)
  return response.text()
}
const unescape = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

describe('errors', () => {
  test.each(errorCodes)(
    '%s has a page with the cause, the fix, and the answer exactly as the API sends it',
    async (code) => {
      const text = unescape(await read(`/docs/errors/${code}`))
      const isMessage = socketCodes.includes(code)
      for (const heading of ['Why', 'How to fix it', 'The response']) expect(text).toContain(heading)
      expect(text.includes('What your client shows')).toBe(!isMessage)
      expect(text).not.toMatch(/\{\w+\}/)
      const [, json = ''] = /<code>(\{[\s\S]*?\n\})<\/code>/.exec(text) ?? []
      const { error, headers } = JSON.parse(json) as { error: Record<string, unknown>; headers?: object }
      const { type, source, retryable } = errorCatalog[code]
      expect(error).toMatchObject({ code, type, source, retryable, param: exampleOf(code).facts.param ?? null })
      expect(String(error['message']).length).toBeLessThanOrEqual(240)
      if (isMessage) expect(headers).toMatchObject({ 'x-should-retry': String(retryable) })
      else if (code === streamCode) expect(text).toContain('the last event of a stream')
      else expect(text).toContain(`HTTP/1.1 ${exampleOf(code).status} `)
    },
  )

  test('the page of a revoked key shows what the API says', async () => {
    const { stored, key: secret } = await service.addNamedKey('to be revoked')
    const key = secret.reveal()
    await service.revoke(stored.id)
    await expect
      .poll(async () => (await service.chat({}, { authorization: `Bearer ${key}` })).status, { timeout: 3000 })
      .toBe(401)
    const said = (await (await service.chat({}, { authorization: `Bearer ${key}` })).json()) as { error: object }
    const text = unescape(await read('/docs/errors/key_revoked'))
    const shown = JSON.parse(/<code>(\{[\s\S]*?\n\})<\/code>/.exec(text)![1]!) as typeof said
    expect({ ...shown.error, request_id: '' }).toEqual({ ...said.error, request_id: '' })
  })

  test('the page of rejected content says that the error can end a stream, and that what was sent is charged', async () => {
    const text = await read('/docs/errors/content_rejected')
    expect(text).toContain('If a stream has already begun, the error is its last event')
    expect(text).toContain('unless part of the answer had already been sent')
  })

  test('the page of a request that is rejected because of load says that it does not count, without an exception', async () => {
    const text = await read('/docs/errors/load_shed')
    expect(text).toContain('A rejected request does not count toward your monthly quota.')
    expect(text).not.toContain('already been sent')
  })

  test('an unknown code has no page', async () => {
    expect((await visitor.get('/docs/errors/no_such_code')).status).toBe(404)
  })
})

describe('every documentation page', () => {
  test('every page is reachable from the first page or llms.txt, is small, and has only working links', async () => {
    const pages = Array.from((await read('/llms.txt')).matchAll(/\]\(([^)]+)\)/g), ([, url]) => new URL(url!).pathname)
    expect(pages.length).toBeGreaterThan(errorCodes.length)
    const links = new Set(['/docs'])
    for (const path of pages) links.add(path).add(path.replace(/\.md$/, ''))
    for (const path of links) {
      // Some links are for signed-in users, others for visitors.
      const answers = [await owner.get(path), await visitor.get(path)]
      const response = answers.find(({ status }) => status === 200)
      if (response === undefined) throw new Error(`${path} is no page`)
      const text = await response.text()
      if (!response.headers.get('content-type')!.startsWith('text/html')) continue
      expect(Buffer.byteLength(text), path).toBeLessThanOrEqual(maxPageBytes(path))
      if (!path.startsWith('/docs')) continue
      for (const [, href] of text.matchAll(/href="(\/[^"]*)"/g)) links.add(href!.split('#')[0]!)
      const ids = new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => `#${id}`))
      for (const [, place] of text.matchAll(/href="(#[^"]+)"/g)) expect(ids, path).toContain(place)
    }
    for (const name of readdirSync(new URL('../../docs/', import.meta.url)))
      if (name.endsWith('.md')) expect(links).toContain(`/docs/${name.slice(0, -3)}`)
  })

  test('every page is also available as Markdown, and its HTML contains no leftover Markdown', async () => {
    for (const [, url] of (await read('/llms.txt')).matchAll(/\]\(([^)]+\.md)\)/g)) {
      const { pathname } = new URL(url!)
      const response = await visitor.get(pathname)
      expect(response.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
      expect(await response.text()).toMatch(/^# /)
      const page = await read(pathname.replace('.md', ''))
      const prose = page.slice(page.indexOf('<main')).replaceAll(/<code>[\s\S]*?<\/code>/g, '')
      expect(prose, pathname).not.toMatch(/\]\(|\*\*|```|^\||`/m)
    }
  })

  test("a page names this service's address where its source names the reader's machine", async () => {
    const text = (await read('/docs/clients')) + (await read('/docs/clients/codex'))
    expect(text).toContain(service.baseUrl)
    expect(text).not.toContain('127.0.0.1:8787')
  })
})

describe('navigation', () => {
  const listOf = (text: string): string => /<nav id="all-pages"[\s\S]*?<\/nav>/.exec(text)![0]
  const linkTo = (rel: string, text: string): string | undefined =>
    new RegExp(`<a rel="${rel}" href="([^"]+)"`).exec(text)?.[1]

  test('every page lists all pages and marks itself once', async () => {
    for (const path of [
      '/docs',
      '/docs/clients',
      '/docs/clients/codex',
      '/docs/operators',
      '/docs/errors/key_missing',
    ]) {
      const list = listOf(await read(path))
      for (const top of ['clients', 'fusion', 'upstreams', 'api', 'errors', 'operators', 'web-app'])
        expect(list, path).toContain(`href="/docs/${top}"`)
      const marked = Array.from(list.matchAll(/href="([^"]+)" aria-current="page"/g), ([, href]) => href)
      expect(marked).toEqual([path])
    }
  })

  test('the next links visit all pages, and the previous links lead back', async () => {
    const seen: string[] = []
    for (let path: string | undefined = '/docs'; path !== undefined;) {
      const text: string = await read(path)
      expect(linkTo('prev', text), path).toBe(seen.at(-1))
      seen.push(path)
      path = linkTo('next', text)
    }
    const listed = Array.from(
      (await read('/llms.txt')).matchAll(/\]\(([^)]+)\.md\)/g),
      ([, url]) => new URL(url!).pathname,
    )
    expect(new Set(seen)).toEqual(new Set(['/docs', ...listed]))
    expect(seen.length).toBe(new Set(seen).size)
  })

  test('the page of all clients is an index that keeps its old anchors, and each client has a page', async () => {
    const source = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8')
    const headings = Array.from(source.matchAll(/^## (.+)$/gm), ([, heading]) => heading!)
    expect(headings.length).toBeGreaterThan(10)
    const index = await read('/docs/clients')
    for (const heading of headings) {
      const id = headingId(heading)
      expect(index).toContain(`<h2 id="${id}"><a href="/docs/clients/${id}">${heading}</a></h2>`)
      const text = await read(`/docs/clients/${id}`)
      expect(text).toContain(`<h1>${heading}</h1>`)
      expect(text).not.toContain('127.0.0.1:8787')
    }
    expect(index).toContain('export SVC_ROUTER_BASE_URL=')
    expect(index).not.toContain('[model_providers.svc-router]')
    expect(await read('/docs/clients/codex')).toContain('[model_providers.svc-router]')
    expect(await read('/docs/clients/codex')).toContain('href="/docs/clients/websockets"')
    expect((await visitor.get('/docs/clients/none')).status).toBe(404)
  })
})

describe('search', () => {
  const search = async (query: string): Promise<string> => {
    const text = await read(`/docs/search?q=${encodeURIComponent(query)}`)
    return text.slice(text.indexOf('<main'), text.indexOf('<nav id="all-pages"'))
  }
  const found = (text: string): string[] => Array.from(text.matchAll(/<li>\s*<a href="([^"]+)"/g), ([, href]) => href!)

  test('search finds titles first, then headings, then text, and links to the section', async () => {
    expect(found(await search('Codex'))[0]).toMatch(/^\/docs\/clients\/codex/)
    expect(found(await search('key_missing'))[0]).toMatch(/^\/docs\/errors\/key_missing/)
    const openaiName = found(await search('invalid_api_key'))
    expect(openaiName.map((href) => href.split('#')[0])).toEqual([
      '/docs/errors/key_malformed',
      '/docs/errors/key_inactive',
    ])
    const [place = ''] = found(await search('in production smtp trusted_proxies'))
    expect(place).toBe('/docs/web-app#in-production')
    expect(await read('/docs/web-app')).toContain('id="in-production"')
    const retried = found(await search('retry'))
    expect(retried.filter((href) => href.endsWith('#the-answer'))).toEqual([])
    expect(await search('stream_idle_timeout_ms')).toContain('stream_idle_timeout_ms')
  })

  test('search requires every word, and says when nothing is found', async () => {
    expect(found(await search('codex qqzzqq'))).toEqual([])
    expect(await search('codex qqzzqq')).toContain('No page contains all of these words')
    expect(found(await search(''))).toEqual([])
    expect(await search('')).not.toContain('No page has')
  })

  test('search escapes its query and limits what it reads and lists', async () => {
    const text = await search('<script>x</script>"><img src=x>')
    expect(text).not.toMatch(/<script>|<img/)
    expect(text).toContain('&lt;script&gt;')
    expect(found(await search('the')).length).toBe(20)
    const long = 'codex '.repeat(5000)
    const startedAt = performance.now()
    expect(found(await search(long.slice(0, 7000)))[0]).toMatch(/codex/)
    expect(performance.now() - startedAt).toBeLessThan(1000)
    const index = new SearchIndex([{ path: '/docs/x', title: 'X', summary: '', markdown: 'a'.repeat(2_000_000) }])
    const from = performance.now()
    index.find(Array.from({ length: 50 }, (_, n) => `${'a'.repeat(n)}b`).join(' '))
    expect(performance.now() - from).toBeLessThan(1000)
  })

  test('search is a plain form on every page that works without scripts', async () => {
    for (const path of ['/docs', '/docs/api', '/docs/search'])
      expect(await read(path)).toMatch(/<form class="search" role="search" method="get" action="\/docs\/search">/)
  })
})

describe('Markdown', () => {
  const render = async (text: string): Promise<string> =>
    String(await renderMarkdown(text, docLink))
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/> (?=<)/g, '>')

  test('Markdown is escaped: no part of it can become an element or an attribute', async () => {
    const text = await render(
      '<script>x</script> `<b>` [a"b](/x"y) **<i>**\n\n| <u> |\n| --- |\n| <s> |\n\n```\n</pre><script>\n```',
    )
    expect(text).not.toMatch(/<(?:script|b|i|u|s)>/)
    expect(text).toContain('href="/x&quot;y"')
  })

  test('links lead to our pages or to other sites; scripts and unpublished files are never links', async () => {
    expect(await render('see [a](clients.md#codex)')).toContain('href="/docs/clients#codex"')
    expect(await render('see [a](../src/main.ts) and [b](javascript:x) and [c](http://x.example)')).not.toContain(
      'href',
    )
    expect(await render('[Go](/status)')).toContain('class="go"')
  })

  test('Markdown supports continued lists, numbered lists, tables with pipes in code, and headings with anchors', async () => {
    expect(await render('- a\n  b\n- c')).toContain('<ul><li>a b</li><li>c</li></ul>')
    expect(await render('1. a\n\n   ```\n   code\n   ```\n\n2. b')).toMatch(
      /<ol><li>a.*<code>code<\/code>.*<\/li><li>b<\/li><\/ol>/,
    )
    expect(await render('1. a\n2. b')).toContain('<ol><li>a</li><li>b</li></ol>')
    expect(await render('| a |\n| - |\n| `x \\| y` |')).toContain('<code>x | y</code>')
    expect(await render('## A `b` c\n## A `b` c')).toMatch(/id="a-b-c".*id="a-b-c-1"/)
  })
})
