import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import { isObject, type JsonObject } from '../../domain/json.ts'
import { type OtherModels, otherModelsIn } from '../../domain/other-models.ts'

/** Fields that refer to something stored at the provider for the organization that owns the credential. */
const references = new Set([
  'file_id',
  'file_ids',
  'vector_store_id',
  'vector_store_ids',
  'container',
  'container_id',
  'connector_id',
  'skill_id',
  'previous_response_id',
  'cached_content',
  'cachedContent',
])
/** Objects that can refer to such a thing by `id`: a container, an earlier audio answer, a custom voice. */
const referenceObjects = new Set(['container', 'audio', 'voice'])
/** Members with the address of an image or a file, and objects whose `url` is one. */
const addresses = new Set(['image_url', 'video_url', 'audio_url', 'file_url', 'file_uri', 'fileUri'])
const addressObjects = new Set(['image_url', 'video_url', 'audio_url', 'file', 'source'])
/** At other addresses, such as gs: and s3:, and at the files of Gemini's API, a provider reads with the credential of the request. */
const publicSchemes = new Set(['http:', 'https:'])
const filesHost = /^generativelanguage\.googleapis\.com\.?$/
/** These contain the caller's own tools and schemas, where field names mean nothing to the provider. */
const callersOwn = new Set(['metadata', 'parameters', 'input_schema', 'schema', 'arguments', 'logit_bias'])

/**
 * Rejects what only the owner of a credential may request if the credential is the operator's (contract 23.7):
 * references to data of the operator's organization, anything that would store data there, and anything that costs
 * many times what is charged.
 * @throws ServiceError `invalid_request`
 */
export function assertManagedScope(body: JsonObject): void {
  const { prompt, n, store, messages } = body
  if (typeof prompt === 'object' && prompt !== null) throw outOfScope('prompt')
  // For responses, `store` is handled by us and never forwarded as true.
  if (store === true && messages !== undefined)
    throw invalidRequest(
      'store',
      'With managed access, providers do not store chat completions. Send the request without "store": true.',
    )
  if (typeof n === 'number' && n > 1)
    throw invalidRequest('n', 'With managed access, each request returns one answer: n must be 1.')
  const other = otherModelsIn(body) ?? dataSourcesIn(body)
  if (other !== undefined) {
    throw invalidRequest(
      other.name,
      `With ${other.what}, the provider uses other models, services, or data, which managed access does not include. Send the request without it.`,
    )
  }
  for (const [name, value] of Object.entries(body)) checkValue(name, value)
}

function dataSourcesIn({ data_sources: sources }: JsonObject): OtherModels | undefined {
  const isUsed = isObject(sources) || Array.isArray(sources)
  return isUsed ? { name: 'data_sources', what: 'data_sources' } : undefined
}

function checkValue(name: string, value: unknown, parent = ''): void {
  if (callersOwn.has(name)) return
  if (Array.isArray(value)) {
    if (references.has(name) && value.length > 0) throw outOfScope(name)
    for (const entry of value) checkValue('', entry)
  } else if (typeof value === 'object' && value !== null) {
    // The input of a tool call; a request's own input is text or a list.
    if (name === 'input') return
    const object = value as JsonObject
    if (isReference(name, object)) throw outOfScope(name === '' ? 'input' : name)
    for (const [inner, its] of Object.entries(object)) checkValue(inner, its, name)
  } else if (typeof value === 'string') {
    if (references.has(name)) throw outOfScope(name)
    if ((addresses.has(name) || (name === 'url' && addressObjects.has(parent))) && !isPublic(value)) {
      throw invalidRequest(
        name,
        `With managed access, ${name} must be a public https address or a data URL: a provider must not open it with the operator’s credential.`,
      )
    }
  }
}

function isReference(name: string, value: JsonObject): boolean {
  if (referenceObjects.has(name)) return typeof value['id'] === 'string'
  // An image that the provider stored; its content would be in `result`.
  return value['type'] === 'image_generation_call' && typeof value['result'] !== 'string'
}

function isPublic(address: string): boolean {
  // A data URL can have several megabytes; what is not a URL is no address.
  if (/^data:/i.test(address) || !URL.canParse(address)) return true
  const { protocol, hostname } = new URL(address)
  return publicSchemes.has(protocol) && !filesHost.test(hostname)
}

function outOfScope(name: string): ServiceError {
  return invalidRequest(
    name,
    `${name} refers to data that a provider stores for one organization, which managed access does not share. Send the content itself.`,
  )
}
