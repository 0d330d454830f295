import { apiDoc } from './api-doc.ts'
import type { Doc } from './doc.ts'
import { readDocFiles } from './doc-files.ts'
import { errorDocs, type ErrorDocsParts } from './error-docs.ts'
import { SearchIndex } from './search-index.ts'

/** What the documentation is made of. */
export interface LibraryParts extends ErrorDocsParts {
  readonly appUrl: string
  readonly baseUrl: string
}

/** Every page of the documentation, found by its path. */
export class Library {
  readonly #parts: LibraryParts
  readonly #docs: ReadonlyMap<string, Doc>
  readonly #listed: readonly Doc[]
  #searchIndex: SearchIndex | undefined

  constructor(parts: LibraryParts) {
    this.#parts = parts
    const errors = errorDocs(parts)
    this.#listed = [...readDocFiles(parts.baseUrl), apiDoc(parts), ...errors.slice(-1)]
    const pages = [...this.#listed, ...errors.slice(0, -1)]
    const forUsers = pages.filter(({ path }) => !isForOperators(path))
    const forOperators = pages.filter(({ path }) => isForOperators(path))
    const all = [this.#index(), ...forUsers, ...forOperators]
    this.#docs = new Map(all.map((doc) => [doc.path, doc]))
  }

  /** Finds pages by their words. It is built for the first search. */
  get searchIndex(): SearchIndex {
    return (this.#searchIndex ??= new SearchIndex(this.all))
  }

  /** Every page, in the order in which they are read. */
  get all(): readonly Doc[] {
    return [...this.#docs.values()]
  }

  find(path: string): Doc | undefined {
    return this.#docs.get(path)
  }

  /** The pages that belong to none but the first, for those who use the service or for those who run it. */
  topPages(who: 'users' | 'operators'): readonly Doc[] {
    return this.#listed.filter(({ path }) => isTop(path) && isForOperators(path) === (who === 'operators'))
  }

  /** The pages that belong to one that is not the first. */
  pagesBelow(path: string): readonly Doc[] {
    return this.all.filter((doc) => doc.path.startsWith(`${path}/`))
  }

  /** The page before and the page after this one. */
  around(path: string): { readonly previous: Doc | undefined; readonly next: Doc | undefined } {
    const { all } = this
    const at = all.findIndex((doc) => doc.path === path)
    return { previous: at > 0 ? all[at - 1] : undefined, next: all[at + 1] }
  }

  #index(): Doc {
    const { baseUrl } = this.#parts
    const row = ({ title, path, summary }: Doc): string => `- [${title}](${path}): ${lowerFirst(summary)}`
    const markdown = [
      'One base URL and one key for many models. A request names a profile; whichever provider behind it can answer does, and when one fails the next is asked.',
      '```',
      `curl -sS ${baseUrl}/chat/completions -H "authorization: Bearer $SVC_ROUTER_API_KEY" \\`,
      "  -H 'content-type: application/json' \\",
      `  -d '{"model":"svc-router/frontier","messages":[{"role":"user","content":"Hello!"}]}'`,
      '```',
      '',
      '## Pages',
      '',
      '- [Connect a client](/connect): ready configurations with this service’s address.',
      ...this.topPages('users').map(row),
      '- [Models](/models), [plans](/pricing) and the [status](/status) of the service.',
      '',
      '## For those who run the service',
      '',
      ...this.topPages('operators').map(row),
    ]
    return {
      path: '/docs',
      title: 'Documentation',
      summary: 'Where to start, and every page.',
      markdown: markdown.join('\n'),
    }
  }

  /** The documentation for programs that read: what there is, and where its Markdown is. */
  llmsTxt(): string {
    const { appUrl, baseUrl } = this.#parts
    const row = ({ title, path, summary }: Doc): string => `- [${title}](${appUrl}${path}.md): ${summary}`
    const errors = this.all.filter(({ path }) => path.startsWith('/docs/errors/'))
    return `${[
      '# svc-router',
      '',
      `> A hosted API that routes requests to many models through named profiles. Compatible with the APIs of OpenAI and Anthropic. Base URL: ${baseUrl}`,
      '',
      'Ask for the model svc-router/frontier first. Keys start with sk_svc_ and are sent as "Authorization: Bearer". Programs say what they are in User-Agent.',
      '',
      '## Documentation',
      '',
      ...this.#listed.map(row),
      `- [OpenAPI](${appUrl}/openapi.json): the API as a machine reads it.`,
      `- [Status](${appUrl}/status.json): what works just now.`,
      '',
      '## Errors',
      '',
      ...errors.map(row),
    ].join('\n')}\n`
  }
}

/** Whatever is not for those who use it. */
function isForOperators(path: string): boolean {
  return !['clients', 'agent-libraries', 'fusion', 'upstreams', 'contract', 'api', 'errors'].includes(
    path.split('/')[2] ?? '',
  )
}

function isTop(path: string): boolean {
  return path.split('/').length === 3
}

function lowerFirst(text: string): string {
  // A word in capitals, or a name, keeps them.
  return /^[A-Z][a-z]+ (?!Connect)/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text
}
