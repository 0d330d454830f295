import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** US dollars per million tokens, as the configuration has them. */
export const usdPerMillion = { input: 10, output: 100 }
/** The longest time that an answer takes, milliseconds. */
const slowestMs = 60

/**
 * A simulated provider of chat completions that bills like a real one: for all of its input and for the tokens that it
 * generates, whether or not anyone reads the answer. It obeys `max_tokens`.
 */
export interface BillingProvider {
  readonly name: string
  readonly baseUrl: string
  /** What requests of each user were billed, in nanodollars, by their field `user`. */
  readonly bills: ReadonlyMap<string, number>
  close(): Promise<void>
}

export async function startBillingProvider(name: string): Promise<BillingProvider> {
  const bills = new Map<string, number>()
  let count = 0
  const server = createServer((request, response) => {
    void readText(request).then((text) => {
      count += 1
      answer(text, count, response, bills)
    })
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    name,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    bills,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answer(text: string, count: number, response: ServerResponse, bills: Map<string, number>): void {
  const body = JSON.parse(text) as { user: string; max_tokens?: number; max_completion_tokens?: number }
  const limit = body.max_tokens ?? body.max_completion_tokens
  if (limit === undefined) throw new Error('a request without an output limit arrived')
  const input = Math.ceil(text.length / 4)
  // From a few tokens to all that it may generate.
  const output = 1 + ((count * 7_919) % limit)
  const nanoUsd = (input * usdPerMillion.input + output * usdPerMillion.output) * 1_000
  bills.set(body.user, (bills.get(body.user) ?? 0) + nanoUsd)
  setTimeout(
    () => {
      if (response.destroyed) return
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({
          id: `chatcmpl-${count}`,
          object: 'chat.completion',
          created: 0,
          model: 'billed',
          choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
          usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
        }),
      )
    },
    (count * 31) % slowestMs,
  )
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
