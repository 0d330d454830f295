import type { Json } from '../domain/conversation.ts'
import { bodyShape, JsonScan, patchMembers } from '../formats/json-scan.ts'
import type { ModelRequest } from './ports.ts'
import { giveWay } from './turns.ts'

/**
 * The same request with other values of some outermost members, `undefined` leaving one out; all other bytes stay as they
 * were. `assertSize` is told how many bytes it has then, before they are read again.
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
    await giveWay(text)
  }
  const bytes = patchMembers(request.bytes, request.members, texts)
  assertSize(bytes.length)
  await giveWay(bytes)
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  await giveWay(bytes)
  return { ...request, bytes, members: scan.members(bytes), body }
}
