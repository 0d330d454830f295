import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiOperations } from '../../src/api-docs/operations.ts'
import { errorCodes } from '../../src/domain/error-message.ts'
import { errorCatalog } from '../../src/domain/errors.ts'
import { requestFormatIds } from '../../src/domain/format-id.ts'
import { formatById } from '../../src/formats/formats.ts'
import { Service } from '../service.ts'

interface Operation {
  readonly operationId: string
  readonly security: readonly object[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[]
  readonly requestBody?: {
    readonly content: { readonly 'application/json': { schema: { required: string[] }; example: object } }
  }
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>
}
interface Document {
  readonly openapi: string
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

let service: Service
let document: Document
beforeAll(async () => {
  service = await Service.start()
  document = (await (await fetch(`${service.config.appUrl}/openapi.json`)).json()) as Document
})
afterAll(() => service.stop())

const operations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
const ask = (method: string, path: string, key = service.key) =>
  fetch(`${service.origin}${path}`, {
    method,
    headers: {
      'user-agent': 'tests/1.0',
      'content-type': 'application/json',
      ...(key !== '' && { authorization: `Bearer ${key}` }),
    },
    ...(method === 'POST' && { body: '{}' }),
  })
const codeOf = async (response: Response): Promise<string | undefined> =>
  response.status < 400 ? undefined : ((await response.json()) as { error?: { code: string } }).error?.code

describe('the OpenAPI document', () => {
  test('its version is 3.1, all references resolve, and operation IDs are unique', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(document.servers).toEqual([{ url: service.origin }])
    for (const [, ref] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = ref!.split('/').reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], document)
      expect(found, ref).toBeTypeOf('object')
    }
    const ids = operations().map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('all path parameters are declared, all responses described, and examples have all required members', () => {
    for (const { path, operation } of operations()) {
      const named = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name)
      const declared = (operation.parameters ?? []).filter((one) => one.in === 'path' && one.required === true)
      expect(
        declared.map(({ name }) => name),
        path,
      ).toEqual(named)
      for (const answer of Object.values(operation.responses)) expect(answer.$ref ?? answer.description).toBeTruthy()
      const body = operation.requestBody?.content['application/json']
      for (const name of body?.schema.required ?? []) expect(body!.example).toHaveProperty(name)
    }
  })

  test('it has a response for the status of every error except those of WebSockets', () => {
    const text = JSON.stringify(document)
    for (const code of errorCodes) {
      expect(text, code).toContain(`/docs/errors/${code})`)
      expect(text).toContain(`Error${errorCatalog[code].status}`)
    }
  })

  test('every operation is served: it succeeds, or rejects what was sent', async () => {
    for (const { path, method, operation } of operations()) {
      const response = await ask(
        method.toUpperCase(),
        path
          .replace('{model}', 'svc-router/frontier')
          .replace('{response_id}', 'resp_0123456789')
          .replace('{conversation_id}', 'conv_0123456789')
          .replace('{request_id}', 'req_0123456789')
          .replace('{item_id}', 'msg_1'),
      )
      const code = await codeOf(response)
      expect(
        [
          undefined,
          'invalid_request',
          'response_not_found',
          'request_not_found',
          'conversation_not_found',
          'unsupported_parameter',
          'model_not_found',
        ],
        `${method} ${path}`,
      ).toContain(code)
      expect(Object.keys(operation.responses), `${method} ${path}`).toContain(String(response.status))
    }
  })

  test('it requires a key exactly if the API does', async () => {
    for (const { path, method, operation } of operations()) {
      const { status } = await ask(method.toUpperCase(), path, '')
      expect(status === 401, `${method} ${path}`).toBe(operation.security.length > 0)
    }
  })

  test('it has every route of the formats, and no other route is served among all combinations of known path segments', async () => {
    const served = new Set(operations().map(({ method, path }) => `${method.toUpperCase()} ${path}`))
    const ofFormats = requestFormatIds.flatMap((id) => {
      const { path, conventions } = formatById(id)
      return [path, ...(conventions.tokenCount === undefined ? [] : [conventions.tokenCount.path])]
    })
    for (const path of ofFormats) expect(served).toContain(`POST /v1${path}`)
    const words = [...new Set(apiOperations.flatMap(({ path }) => path.split('/')))].filter((word) =>
      /^\w[\w-]*$/.test(word),
    )
    const below = ['', ...words.map((word) => `/${word}`)]
    const paths = new Set([
      '/',
      ...below.flatMap((a) => below.map((b) => `${a}${b}`)),
      ...below.flatMap((a) => [`/v1${a}/x`, `/v1/responses/x${a}`, `/v1/responses${a}`]),
    ])
    const known = (method: string, path: string): boolean =>
      [...served].some((each) =>
        new RegExp(`^${each.replaceAll(/\{model\}/g, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(
          `${method} ${path}`,
        ),
      )
    for (const path of [...paths].filter((each) => each !== '' && !each.startsWith('//')))
      for (const method of ['GET', 'POST', 'DELETE']) {
        if (known(method, path)) continue
        const code = await codeOf(await ask(method, path))
        expect(
          ['not_found', 'method_not_allowed', 'upgrade_required'],
          `${method} ${path} is served and not in the document`,
        ).toContain(code)
      }
  }, 60_000)
})
