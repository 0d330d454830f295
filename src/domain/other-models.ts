import { isGiven, isObject, type Json, type JsonObject } from './json.ts'

/** With these members, a provider uses other models or stored settings, or runs other paid services. */
const members = ['models', 'plugins', 'preset']
/** Tools that may name a model and still cost nothing at a provider's other models: the caller's, and our own. */
const harmless = /^(?:function|custom|image_generation|svc-router:)/

/** A member that lets a provider use something else than the backend's model, and the words for it in a message. */
export interface OtherModels {
  readonly name: string
  readonly what: string
}

/**
 * The member of a request with which its provider uses other models than the backend's, at prices that nobody knows; undefined if
 * there is none. A tool that asks a model of its own, such as an advisor, is one.
 */
export function otherModelsIn(body: JsonObject): OtherModels | undefined {
  const name = members.find((one) => isGiven(body[one]))
  if (name !== undefined) return { name, what: name }
  const { tools } = body
  const asks = Array.isArray(tools) && (tools as readonly Json[]).some(asksAnotherModel)
  return asks ? { name: 'tools', what: 'a tool with a model of its own' } : undefined
}

function asksAnotherModel(tool: Json): boolean {
  if (!isObject(tool)) return false
  const { type, model, parameters } = tool
  if (typeof type !== 'string' || harmless.test(type)) return false
  return typeof model === 'string' || (isObject(parameters) && typeof parameters['model'] === 'string')
}
