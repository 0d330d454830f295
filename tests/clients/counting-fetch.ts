/** A client's HTTP requests and their answers, one entry each. */
export interface Traffic {
  readonly sent: { readonly path: string; readonly atMs: number }[]
  readonly answers: { readonly status: number; readonly headers: Headers }[]
}

/** A `fetch` for a real client that records its traffic. */
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
