import type { Json, JsonObject } from '../../domain/json.ts'
import { readStatedCost } from '../stated-cost.ts'

/** The counts that chat and responses name alike: in the details of input and output, and beside them. */
export function readUsageDetails(usage: JsonObject, input: JsonObject, output: JsonObject) {
  return {
    reasoning: output['reasoning_tokens'],
    audioInput: input['audio_tokens'],
    audioOutput: output['audio_tokens'],
    imageInput: input['image_tokens'],
    imageOutput: output['image_tokens'],
    statedCost: readStatedCost(usage),
  }
}

/**
 * The counts whose sum is the output. Some providers, such as xAI, count reasoning beside the answer instead of as part of it.
 * Then only the total contains both.
 */
export function outputCounts(
  input: Json | undefined,
  output: Json | undefined,
  reasoning: Json | undefined,
  total: Json | undefined,
): readonly (Json | undefined)[] {
  const counts = [input, output, reasoning, total]
  if (!counts.every((count) => typeof count === 'number')) return [output]
  const [read, written, thought, all] = counts as [number, number, number, number]
  return thought > 0 && all >= read + written + thought ? [written, thought] : [written]
}
