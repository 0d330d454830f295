import type { Json } from '../domain/json.ts'
import { bodyShape, JsonScan, patchMembers } from '../formats/json-scan.ts'
import { yieldToEventLoop } from '../runtime/yield-to-event-loop.ts'
import type { ModelRequest } from './ports.ts'

/**
 * Returns the request with new values for some top-level members; `undefined` removes one, and all other bytes are
 * unchanged. `assertSize` gets the new byte count before the bytes are parsed again.
 */
export async function rewriteRequest(
  request: ModelRequest,
  changes: Readonly<Record<string, Json | undefined>>,
  assertSize: (bytes: number) => void = () => {},
): Promise<ModelRequest> {
  const texts: Record<string, string | undefined> = {}
  const body: Record<string, Json | undefined> = { ...request.body }
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) {
      texts[name] = undefined
      delete body[name]
      continue
    }
    const text = JSON.stringify(value)
    texts[name] = text
    body[name] = value
    await yieldToEventLoop(text)
  }
  const bytes = patchMembers(request.bytes, request.members, texts)
  assertSize(bytes.length)
  await yieldToEventLoop(bytes)
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  await yieldToEventLoop(bytes)
  return { ...request, bytes, members: scan.members(bytes), body }
}
