import type { AnswerEvent, Tool } from '../domain/conversation.ts'

/** The longest name that providers accept. */
const maxNameCharacters = 64
const hashCharacters = 7
const forbidden = /[^a-zA-Z0-9_-]/g

type NamedTool = Exclude<Tool, { readonly type: 'hosted' }>
type CallEvent = Extract<AnswerEvent, { readonly type: 'call' }>

/**
 * A call under the caller's name for the tool. `wrapped`: a custom tool's input is the only string inside the call's
 * arguments.
 */
export interface CallIdentity {
  readonly kind: 'function' | 'custom'
  readonly name: string
  readonly namespace?: string
  readonly wrapped: boolean
}

/**
 * Tool names for backends without namespaces and custom tools: a namespaced tool is called `namespace__name` there, at
 * most 64 characters, unique among the tools. The same tools always get the same names, so that an answer's calls can
 * be returned under the caller's names (contract 11.7).
 */
export class ToolNames {
  readonly #flat = new Map<string, string>()
  readonly #tools = new Map<string, NamedTool>()

  constructor(tools: readonly Tool[]) {
    for (const tool of tools) {
      if (tool.type === 'hosted' || tool.namespace !== undefined) continue
      if (!this.#tools.has(tool.name)) this.#tools.set(tool.name, tool)
    }
    // In an order of their own, so that names do not depend on the order in which the caller lists the tools.
    for (const tool of tools.filter(hasNamespace).toSorted(compareNames)) {
      const key = keyOf(tool.name, tool.namespace)
      if (this.#flat.has(key)) continue
      let flat = flatName(tool.name, tool.namespace, 0)
      for (let salt = 1; this.#tools.has(flat); salt++) flat = flatName(tool.name, tool.namespace, salt)
      this.#flat.set(key, flat)
      this.#tools.set(flat, tool)
    }
  }

  /** The name for a backend without namespaces. */
  flatten(name: string, namespace: string | undefined): string {
    if (namespace === undefined) return name
    return this.#flat.get(keyOf(name, namespace)) ?? flatName(name, namespace, 0)
  }

  /** The backend's name for a tool in a tool choice; the namespace may be omitted if the name is unambiguous. */
  choose(name: string, namespace: string | undefined): string {
    if (namespace !== undefined || this.#tools.has(name)) return this.flatten(name, namespace)
    for (const [flat, tool] of this.#tools) if (tool.name === name) return flat
    return name
  }

  /** The called tool as its caller declared it; an unknown name stays as it is. */
  identify(call: CallEvent): CallIdentity {
    const tool = call.kind === 'function' && call.namespace === undefined ? this.#tools.get(call.name) : undefined
    const name = tool?.name ?? call.name
    const namespace = tool?.namespace ?? call.namespace
    const wrapped = tool?.type === 'custom'
    const kind = wrapped ? 'custom' : call.kind
    return namespace === undefined ? { kind, name, wrapped } : { kind, name, namespace, wrapped }
  }
}

type NamespacedTool = NamedTool & { readonly namespace: string }

function hasNamespace(tool: Tool): tool is NamespacedTool {
  return tool.type !== 'hosted' && tool.namespace !== undefined
}

function compareNames(one: NamespacedTool, other: NamespacedTool): number {
  const [first, second] = [keyOf(one.name, one.namespace), keyOf(other.name, other.namespace)]
  return first < second ? -1 : first > second ? 1 : 0
}

function keyOf(name: string, namespace: string): string {
  return JSON.stringify([namespace, name])
}

function flatName(name: string, namespace: string, salt: number): string {
  const joined = `${namespace}__${name}`
  const clean = joined.replace(forbidden, '_')
  if (salt === 0 && clean === joined && joined.length <= maxNameCharacters) return joined
  return `${clean.slice(0, maxNameCharacters - hashCharacters - 1)}_${hash(`${salt} ${keyOf(name, namespace)}`)}`
}

/** FNV-1a, 32 bits: enough to tell names apart; a collision is resolved by another salt. */
function hash(text: string): string {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  return (value >>> 0).toString(36).padStart(hashCharacters, '0')
}
