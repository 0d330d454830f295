import type { ServiceCall } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { fusionCallNames, fusionToolType } from '../../domain/profiles.ts'
import type { Frames } from './frames.ts'

/**
 * A call that the service made and answered itself, as a closed item: in the shape of a remote server's tool, which
 * every client supports, with its events; or as an item of our own type if the caller requested that.
 */
export function writeServiceCall(
  frames: Frames,
  outputIndex: number,
  id: string,
  call: ServiceCall,
): { readonly frames: string; readonly item: JsonObject } {
  const isNative = call.shape === 'native'
  const itemId = `${isNative ? 'fus' : 'mcp'}_${id}`
  const head = { type: isNative ? fusionToolType : 'mcp_call', id: itemId, ...(isNative ? {} : fusionCallNames) }
  const opened = { ...head, arguments: '', output: null, error: null, status: 'in_progress' }
  const status = call.error === undefined ? 'completed' : 'failed'
  const item = { ...head, arguments: call.arguments, output: call.output ?? null, error: call.error ?? null, status }
  const indexFields = { item_id: itemId, output_index: outputIndex }
  let text = frames.write('response.output_item.added', { output_index: outputIndex, item: opened })
  if (!isNative) {
    text += frames.write('response.mcp_call.in_progress', indexFields)
    text += frames.write('response.mcp_call_arguments.done', { ...indexFields, arguments: call.arguments })
    text += frames.write(`response.mcp_call.${status}`, indexFields)
  }
  text += frames.write('response.output_item.done', { output_index: outputIndex, item })
  return { frames: text, item }
}
