import { describeBug } from '../../runtime/describe-bug.ts'
import type { Visit } from './visit.ts'

/** A response body with backpressure. On failure the stream errors, so that a client does not take it for complete. */
export function streamTexts(
  { deps, requestId }: Pick<Visit, 'deps' | 'requestId'>,
  texts: AsyncGenerator<string, undefined>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await texts.next()
          if (done === true) controller.close()
          else controller.enqueue(encoder.encode(value))
        } catch (error) {
          deps.log({ event: 'internal_error', requestId, ...describeBug(error) })
          controller.error(error)
        }
      },
      async cancel() {
        await texts.return(undefined)
      },
    },
    { highWaterMark: 1 },
  )
}
