import type { ProviderFormat } from '../format.ts'
import { GeminiReader } from './read-answer.ts'
import { writeRequest } from './write-request.ts'

/** Google's own `generateContent`, on its Gemini API and on Vertex AI. Providers speak it, no client of ours does. */
export const gemini: ProviderFormat = {
  id: 'gemini',
  sealsByModel: true,
  upstreamPath: (model, stream) =>
    `/${resourceOf(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  writeRequest,
  readAnswer: () => new GeminiReader(),
}

/** `models/NAME`; what has a kind of its own, such as `tunedModels/NAME`, stays as it is. */
function resourceOf(model: string): string {
  const segments = model.split('/').map((segment) => encodeURIComponent(segment))
  return segments.length > 1 ? segments.join('/') : `models/${segments[0] ?? ''}`
}
