import { readdirSync, readFileSync } from 'node:fs'
import { request as sendRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientFormatIds } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { clientFormats } from '../../src/formats/formats.ts'
import { Service } from '../service.ts'

const folder = join(import.meta.dirname, '..', 'fixtures', 'client-requests')
const answerWithinMs = 10_000
/** Headers that the connection sets itself, or that a test sets. */
const ours = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'authorization'])
/** Recordings with other model names request this profile instead. */
const model = 'svc-router/frontier'

interface Recording {
  readonly file: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: JsonObject
}

const recordings = readdirSync(folder)
  .map((file): Recording => ({
    file,
    ...(JSON.parse(readFileSync(join(folder, file), 'utf8')) as Omit<Recording, 'file'>),
  }))
  .filter(
    ({ method, path }) =>
      method === 'POST' && Object.values(clientFormats).some((format) => pathOnly(path) === `/v1${format.path}`),
  )

/** Recordings that refer to answers stored elsewhere, which do not exist here. */
const referring: Readonly<Record<string, readonly [status: number, code: string]>> = {
  'aisdk-responses-item-reference-turn2.json': [404, 'item_not_found'],
  'aisdk-responses-prev-id.json': [400, 'previous_response_not_found'],
  'openai-responses-prev-id-turn2.json': [400, 'previous_response_not_found'],
}

test('there are 47 recordings of requests for answers, from every client', () => {
  expect(recordings).toHaveLength(47)
  const clients = new Set(recordings.map(({ headers }) => headers['user-agent']!.split('/')[0]))
  expect(clients).toEqual(
    new Set(['OpenAI', 'ai', 'ai-sdk-openai', 'ai-sdk-openai-compatible', 'claude-cli', 'codex_exec', 'opencode']),
  )
})

describe.each(clientFormatIds)('a backend of format %s', (format) => {
  let service: Service
  beforeAll(async () => {
    service = await Service.start({ formats: [format] })
  })
  afterAll(() => service.stop())

  test.each(recordings)('it answers $file', async ({ file, path, headers, body }) => {
    const { status, contentType, text } = await replay(service, path, headers, { ...body, model })
    const refusal = referring[file]
    if (refusal !== undefined) {
      const { error } = JSON.parse(text) as { error: { code: string } }
      expect([status, error.code]).toEqual(refusal)
      return
    }
    expect(status, text).toBe(200)
    expect(service.providers[0]!.captured().at(-1)!.path).toBe(`/v1${clientFormats[format].path}`)
    expect(text).toContain(`"${model}"`)
    if (body['stream'] === true) {
      expect(contentType).toContain('text/event-stream')
      const { done, complete } = endings[pathOnly(path)]!
      expect(text.trimEnd().endsWith(done)).toBe(true)
      expect(text).toMatch(complete)
      expect(text).not.toMatch(/"error":\{|response\.failed/)
    } else {
      expect(contentType).toContain('application/json')
      const answer = JSON.parse(text) as { object: string; status?: string }
      expect(answer).toMatchObject(
        path.endsWith('/responses') ? { object: 'response', status: 'completed' } : { object: 'chat.completion' },
      )
    }
  })

  test('it never receives the fusion tool, which is ours', async () => {
    const withTool = recordings.filter(({ body }) => JSON.stringify(body).includes('svc-router:fusion'))
    expect(withTool.length).toBeGreaterThanOrEqual(2)
    for (const { path, headers, body } of withTool) {
      expect((await replay(service, path, headers, { ...body, model })).status).toBe(200)
      expect(service.providers[0]!.captured().at(-1)!.body).not.toContain('svc-router:fusion')
    }
  })
})

/** How a complete stream ends, by path. */
const endings: Readonly<Record<string, { readonly done: string; readonly complete: RegExp }>> = {
  '/v1/chat/completions': { done: 'data: [DONE]', complete: /"finish_reason":"(stop|tool_calls)"/ },
  '/v1/responses': { done: 'data: [DONE]', complete: /"response\.completed"/ },
  '/v1/messages': { done: 'data: {"type":"message_stop"}', complete: /"stop_reason":"(end_turn|tool_use)"/ },
}

function pathOnly(path: string): string {
  return path.split('?')[0]!
}

/** Sends a recording with its client's headers, except for the key. */
function replay(
  service: Service,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: JsonObject,
): Promise<{ status: number; contentType: string; text: string }> {
  const kept = Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => !ours.has(name))
      // Redacted parts of the recording are ellipses, which are not allowed in headers.
      .map(([name, value]) => [name, value.replaceAll('…', '...')]),
  )
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      `${service.origin}${path}`,
      {
        method: 'POST',
        headers: { ...kept, authorization: `Bearer ${service.key}` },
        signal: AbortSignal.timeout(answerWithinMs),
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          resolve({ status: response.statusCode ?? 0, contentType: response.headers['content-type'] ?? '', text })
        })
      },
    )
    request.on('error', reject)
    request.end(JSON.stringify(body))
  })
}
