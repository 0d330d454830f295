import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { isArray } from '../../formats/fields.ts'

/**
 * Encrypted reasoning that only the provider with that name accepts back. It imitates the form of a real one and
 * contains no secret.
 */
export function sealAs(name: string, id: string): string {
  return Buffer.from(`${mark(name)}${id}`).toString('base64')
}

/** Whether a request contains encrypted reasoning from another provider, which real providers answer with 400. */
export function hasForeignSeal(name: string, { input, messages }: JsonObject): boolean {
  const items = isArray(input) ? input : []
  const blocks = isArray(messages) ? messages.flatMap(blocksOf) : []
  return [...items, ...blocks].some((entry) => {
    if (!isObject(entry)) return false
    const sealed = entry['type'] === 'thinking' ? entry['signature'] : entry['encrypted_content']
    return typeof sealed === 'string' && !Buffer.from(sealed, 'base64').toString().startsWith(mark(name))
  })
}

function blocksOf(message: Json): readonly Json[] {
  const content = isObject(message) ? message['content'] : undefined
  return isArray(content) ? content : []
}

function mark(name: string): string {
  return `simulated by ${name} `
}
