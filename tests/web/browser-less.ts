import { openSession } from '../../src/accounts/identity/sessions.ts'
import { Service, type ServiceOptions } from '../service.ts'

/** A minimal browser: it stores its cookie and submits forms like real browsers. */
export class Visitor {
  readonly #origin: string
  /** A page with forms of this session. */
  readonly #tokenPage: string
  cookie = ''
  /** The cookie that identifies a browser in which an address was verified. */
  known = ''

  constructor(origin: string, tokenPage = '/account') {
    this.#tokenPage = tokenPage
    this.#origin = origin
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.#fetch(path, { method: 'GET', headers })
  }

  /** Submits a form from a page of the app, with the token of the session if there is one. */
  async post(
    path: string,
    fields: Readonly<Record<string, string | readonly string[]>> = {},
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return this.postOnly(path, { ...(this.cookie !== '' && { csrf: await this.csrf() }), ...fields }, headers)
  }

  /** Like `post`, with exactly these fields. */
  postOnly(
    path: string,
    fields: Readonly<Record<string, string | readonly string[]>>,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return this.#fetch(path, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(
        Object.entries(fields).flatMap(([name, given]) => [given].flat().map((value) => [name, value])),
      ).toString(),
    })
  }

  /** The token in the forms of this session. */
  async csrf(): Promise<string> {
    const text = await (await this.get(this.#tokenPage)).text()
    return /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? ''
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const cookies = [this.cookie, this.known].filter((cookie) => cookie !== '')
    const response = await fetch(`${this.#origin}${path}`, {
      ...init,
      redirect: 'manual',
      headers: {
        ...(init.headers as Record<string, string>),
        ...(cookies.length > 0 && { cookie: cookies.join('; ') }),
      },
    })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      if (pair.startsWith('svc_known=')) this.known = pair
      else this.cookie = pair.endsWith('=') ? '' : pair
    }
    return response
  }
}

/** Starts a service, with one visitor of its web app. */
export async function startWeb(options: ServiceOptions = {}): Promise<{ service: Service; visitor: Visitor }> {
  const service = await Service.start(options)
  return { service, visitor: new Visitor(service.config.appUrl) }
}

/** Returns a browser that is signed in to an account. */
export async function signedInTo(service: Service, accountId = service.account.id): Promise<Visitor> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, accountId, { method: 'link', agent: 'Tests' })
  const visitor = new Visitor(service.config.appUrl)
  visitor.cookie = `svc_session=${token.reveal()}`
  return visitor
}
