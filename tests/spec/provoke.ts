import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { changeDatabase } from '../change-database.ts'
import type { Service } from '../service.ts'
import { readAnswer, Wire, type Answer } from '../wire.ts'

/** Secrets that no answer, log line, or record may ever contain (contract 28.1). */
export const canaries = {
  prompt: 'canary-prompt-3f9d1c77',
  upstream: 'canary-upstream-84b2aa10',
  credential: 'canary-credential-5d01e6f2',
}
/** The prompt of every request. */
export const prompt = `Tell me about ${canaries.prompt}.`
/** The error of a provider that reveals too much. */
export const upstreamBody = JSON.stringify({
  error: {
    message: canaries.upstream,
    type: canaries.upstream,
    code: canaries.upstream,
    param: `messages ${canaries.upstream}`,
  },
})

/** Valid requests in each format. */
export const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: prompt }] }
export const response = { model: 'svc-router/frontier', input: prompt }
export const messages = { ...chat, max_tokens: 100 }

/** SQL that makes every write of a record fail. */
export const failingRecords = `create trigger failing before insert on requests begin select raise(abort, 'no'); end`

/** The headers of a correct client. */
export function headersFor(key: string | undefined): Record<string, string> {
  return {
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    'content-type': 'application/json',
    'user-agent': 'svc-router-tests/1.0',
  }
}

/** What differs from a valid chat request. */
export interface RequestChanges {
  readonly key?: string | undefined
  readonly path?: string
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** Sends a request and reads the whole answer. */
export async function ask(of: Service, changes: RequestChanges = {}): Promise<Answer> {
  const { path = '/chat/completions', method = 'POST', body = chat, headers } = changes
  const key = 'key' in changes ? changes.key : of.key
  const found = await fetch(`${of.baseUrl}${path}`, {
    method,
    headers: { ...headersFor(key), ...headers },
    ...(method !== 'GET' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return readAnswer(found)
}

/** Sends a request while every provider follows `step`. */
export async function askScripted(of: Service, step: ScriptStep, headers?: Record<string, string>): Promise<Answer> {
  for (const provider of of.providers) provider.script([{ ...step, repeat: true }])
  return ask(of, headers === undefined ? {} : { headers })
}

/** Sends a request as bytes, with any number of values for each header. */
export async function send(
  of: Service,
  headers: Record<string, readonly string[]>,
  body = '',
  line = 'POST /v1/chat/completions',
): Promise<Answer> {
  const usual = {
    host: ['127.0.0.1'],
    'user-agent': ['svc-router-tests/1.0'],
    'content-type': ['application/json'],
    authorization: [`Bearer ${of.key}`],
  }
  const lines = Object.entries({ ...usual, ...headers }).flatMap(([name, values]) =>
    values.map((value) => `${name}: ${value}\r\n`),
  )
  return sendBytes(of, `${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

/** Sends arbitrary bytes and returns the first answer. */
export async function sendBytes(of: Service, bytes: string): Promise<Answer> {
  const wire = await Wire.open(of.origin)
  await wire.write(bytes)
  const answer = await wire.answer()
  wire.destroy()
  return answer
}

/** Runs `during` after a change of the database by another process, then reverts the change. */
export async function withDatabase(
  of: Service,
  change: string,
  during: () => Promise<Answer>,
  back?: string,
): Promise<Answer> {
  await changeDatabase(of, change)
  try {
    return await during()
  } finally {
    if (back !== undefined) {
      await changeDatabase(of, back)
      await expect.poll(async () => (await fetch(`${of.origin}/ready`)).status, { timeout: 15_000 }).toBe(200)
    }
  }
}

/** Expects that the answer, the log, and the stored files contain none of the secrets. */
export function expectNoCanary(of: Service, { headers, text }: Answer): void {
  const places: Record<string, string> = {
    body: text,
    headers: [...headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
    log: JSON.stringify(of.events),
  }
  const data = join(of.folder, 'data')
  for (const name of readdirSync(data)) places[name] = readFileSync(join(data, name), 'latin1')
  for (const [place, found] of Object.entries(places)) {
    for (const canary of [...Object.values(canaries), of.key])
      expect(found.includes(canary), `${canary} in ${place}`).toBe(false)
  }
}
