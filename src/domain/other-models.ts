import { isGiven, isObject, type Json, type JsonObject } from './json.ts'

/** With these members, a provider uses other models or stored settings, or runs other paid services. */
const members = ['models', 'plugins', 'preset']
/** Tools that may name a model and still cost nothing at a provider's other models: the caller's, and our own. */
const harmless = /^(?:function|custom|svc-router:)/
/** Another model makes the images, and bills their tokens at its own price, whether or not the tool names it. */
const imageTool = /(?:^|:)image_generation/

/** A member that lets a provider use something else than the backend's model, and the words for it in a message. */
export interface OtherModels {
  readonly name: string
  readonly what: string
}

/**
 * The member of a request with which its provider uses other models than the backend's, at prices that nobody knows; undefined if
 * there is none. A tool with a model of its own, such as an advisor or image_generation, is one.
 */
export function otherModelsIn(body: JsonObject): OtherModels | undefined {
  const name = members.find((one) => isGiven(body[one]))
  if (name !== undefined) return { name, what: name }
  const { tools } = body
  if (!Array.isArray(tools)) return undefined
  const list = tools as readonly Json[]
  if (list.some(makesImages)) return { name: 'tools', what: 'the tool image_generation' }
  return list.some(asksAnotherModel) ? { name: 'tools', what: 'a tool with a model of its own' } : undefined
}

function makesImages(tool: Json): boolean {
  return isObject(tool) && typeof tool['type'] === 'string' && imageTool.test(tool['type'])
}

function asksAnotherModel(tool: Json): boolean {
  if (!isObject(tool)) return false
  const { type, model, parameters } = tool
  if (typeof type !== 'string' || harmless.test(type)) return false
  return typeof model === 'string' || (isObject(parameters) && typeof parameters['model'] === 'string')
}
