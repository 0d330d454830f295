/** What a client sent, and what it was answered: one entry for each HTTP request. */
export interface Traffic {
  readonly sent: { readonly path: string; readonly atMs: number }[]
  readonly answers: { readonly status: number; readonly headers: Headers }[]
}

/** A `fetch` for a real client, and what went through it. */
export function countingFetch(): { fetch: typeof fetch; traffic: Traffic } {
  const traffic: Traffic = { sent: [], answers: [] }
  const counting: typeof fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : input
    traffic.sent.push({ path: new URL(url).pathname, atMs: performance.now() })
    const response = await fetch(input, init)
    traffic.answers.push({ status: response.status, headers: response.headers })
    return response
  }
  return { fetch: counting, traffic }
}
