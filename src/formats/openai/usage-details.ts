import type { JsonObject } from '../../domain/json.ts'
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
