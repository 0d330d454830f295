import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'

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
])
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
  if (store === true && messages !== undefined) throw outOfScope('store')
  if (typeof n === 'number' && n > 1)
    throw invalidRequest('n', 'With managed access, each request returns one answer: n must be 1.')
  for (const [name, value] of Object.entries(body)) checkValue(name, value)
}

function checkValue(name: string, value: unknown): void {
  if (callersOwn.has(name)) return
  if (Array.isArray(value)) {
    if (references.has(name) && value.length > 0) throw outOfScope(name)
    for (const entry of value) checkValue('', entry)
  } else if (typeof value === 'object' && value !== null) {
    // The input of a tool call; a request's own input is text or a list.
    if (name === 'input') return
    for (const [inner, its] of Object.entries(value)) checkValue(inner, its)
  } else if (references.has(name) && typeof value === 'string') throw outOfScope(name)
}

function outOfScope(name: string): ServiceError {
  return invalidRequest(
    name,
    `${name} refers to data that a provider stores for one organization, which managed access does not share. Send the content itself.`,
  )
}
