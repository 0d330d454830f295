import { apiDocs } from './api-doc.ts'
import { readDocFiles } from './doc-files.ts'
import type { Doc } from './doc.ts'
import { errorDocs, type ErrorDocsDeps } from './error-docs.ts'
import { SearchIndex } from './search-index.ts'

/** What the documentation is built from. */
export interface LibraryDeps extends ErrorDocsDeps {
  readonly appUrl: string
  readonly baseUrl: string
}

type Readers = 'users' | 'operators'

interface Pages {
  readonly byPath: ReadonlyMap<string, Doc>
  readonly listed: readonly Doc[]
}

/**
 * Every documentation page, by path (contract 20.10). Built when the first page is requested, so that starting does not
 * wait for it.
 */
export class Library {
  readonly #deps: LibraryDeps
  #builtPages: Pages | undefined
  #searchIndex: SearchIndex | undefined

  constructor(deps: LibraryDeps) {
    this.#deps = deps
  }

  get #pages(): Pages {
    return (this.#builtPages ??= this.#build())
  }

  #build(): Pages {
    const errors = errorDocs(this.#deps)
    const listed = [...readDocFiles(this.#deps.baseUrl), ...apiDocs(this.#deps), ...errors.slice(-1)]
    const pages = [...listed, ...errors.slice(0, -1)]
    const forUsers = pages.filter(({ path }) => !isForOperators(path))
    const forOperators = pages.filter(({ path }) => isForOperators(path))
    const all = [this.#index(listed), ...forUsers, ...forOperators]
    return { byPath: new Map(all.map((doc) => [doc.path, doc])), listed }
  }

  /** Full-text index of all pages, built at the first search. */
  get searchIndex(): SearchIndex {
    return (this.#searchIndex ??= new SearchIndex(this.all))
  }

  /** Every page, in reading order. */
  get all(): readonly Doc[] {
    return [...this.#pages.byPath.values()]
  }

  find(path: string): Doc | undefined {
    return this.#pages.byPath.get(path)
  }

  /** The top-level pages for users of the service or for its operators. */
  topPages(who: Readers): readonly Doc[] {
    return topPagesOf(this.#pages.listed, who)
  }

  /** The pages below `path`. */
  pagesBelow(path: string): readonly Doc[] {
    return this.all.filter((doc) => doc.path.startsWith(`${path}/`))
  }

  /** The previous and the next page. */
  around(path: string): { readonly previous: Doc | undefined; readonly next: Doc | undefined } {
    const { all } = this
    const at = all.findIndex((doc) => doc.path === path)
    return { previous: at > 0 ? all[at - 1] : undefined, next: all[at + 1] }
  }

  #index(listed: readonly Doc[]): Doc {
    const { baseUrl } = this.#deps
    const row = ({ title, path, summary }: Doc): string => `- [${title}](${path}): ${lowerFirst(summary)}`
    const markdown = [
      'One base URL and one key for many models. A request names a profile, such as `svc-router/frontier`. Most profiles send the request to one provider and, if it fails, to another. To send your first request, [get a key](/account/setup) and set it as `SVC_ROUTER_API_KEY`. If the operator of this service provides no models for you, [connect a model provider](/account/upstreams). Then run:',
      '```',
      `curl -sS ${baseUrl}/chat/completions -H "authorization: Bearer $SVC_ROUTER_API_KEY" \\`,
      "  -H 'content-type: application/json' \\",
      `  -d '{"model":"svc-router/frontier","messages":[{"role":"user","content":"Hello!"}]}'`,
      '```',
      '',
      '## Pages',
      '',
      '- [Connect a client](/connect): ready-made configurations with this service’s base URL.',
      ...topPagesOf(listed, 'users').map(row),
      '- [Models](/models), [plans](/pricing), and the [status](/status) of the service.',
      '',
      '## For operators',
      '',
      ...topPagesOf(listed, 'operators').map(row),
    ]
    return {
      path: '/docs',
      title: 'Documentation',
      summary: 'Where to start, and a list of all pages.',
      markdown: markdown.join('\n'),
    }
  }

  /** `llms.txt`: the pages with links to their Markdown, for programs. */
  llmsTxt(): string {
    const { appUrl, baseUrl } = this.#deps
    const row = ({ title, path, summary }: Doc): string => `- [${title}](${appUrl}${path}.md): ${summary}`
    const errors = this.all.filter(({ path }) => path.startsWith('/docs/errors/'))
    return `${[
      '# svc-router',
      '',
      `> A hosted API that routes requests to many models through named profiles. Compatible with the APIs of OpenAI and Anthropic. Base URL: ${baseUrl}`,
      '',
      'Start with the model svc-router/frontier. Keys start with sk_svc_ and are sent as "Authorization: Bearer". Identify your program in User-Agent.',
      '',
      '## Documentation',
      '',
      ...this.#pages.listed.map(row),
      `- [OpenAPI](${appUrl}/openapi.json): a machine-readable description of the API.`,
      `- [Status](${appUrl}/status.json): the current state of the service.`,
      '',
      '## Errors',
      '',
      ...errors.map(row),
    ].join('\n')}\n`
  }
}

function topPagesOf(listed: readonly Doc[], who: Readers): readonly Doc[] {
  return listed.filter(({ path }) => isTop(path) && isForOperators(path) === (who === 'operators'))
}

/** Every page that is not listed here is for operators. */
function isForOperators(path: string): boolean {
  return ![
    'clients',
    'agent-libraries',
    'fusion',
    'upstreams',
    'routing',
    'retries',
    'caching',
    'cached-turns',
    'costs',
    'budgets',
    'webhooks',

    'contract',
    'api',
    'api-conversations',
    'errors',
  ].includes(path.split('/')[2] ?? '')
}

function isTop(path: string): boolean {
  return path.split('/').length === 3
}

function lowerFirst(text: string): string {
  // Names and words in capitals stay unchanged.
  return /^[A-Z][a-z]* (?!Connect)/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text
}
