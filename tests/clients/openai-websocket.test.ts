import OpenAI from 'openai'
import type { Response, ResponsesClientEvent } from 'openai/resources/responses/responses'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { afterEach, expect, test } from 'vitest'
import { Service } from '../service.ts'

let service: Service

afterEach(() => service.stop())

/** Reads the answer to one message as OpenAI's guide to the WebSocket mode does. */
async function answerTo(
  socket: ResponsesWS,
  message: Omit<ResponsesClientEvent.ResponseCreate, 'type'>,
): Promise<Response> {
  socket.send({ type: 'response.create', ...message })
  for await (const event of socket) {
    if (event.type === 'error') throw event.error
    if (event.type !== 'message') continue
    if (event.message.type === 'response.completed') return event.message.response
  }
  throw new Error('the connection was closed before the answer was complete')
}

test.each(['openai-chat', 'openai-responses'] as const)(
  'OpenAI’s SDK sends a request, calls a tool, and continues over one WebSocket, with a backend of format %s',
  async (format) => {
    service = await Service.start({ formats: [format] })
    const socket = new ResponsesWS(new OpenAI({ apiKey: service.key, baseURL: service.baseUrl }))
    const about = { model: 'svc-router/frontier', store: false, stream_id: 'main' }
    const parameters = { type: 'object', properties: { city: { type: 'string' } } }
    const tools = [{ type: 'function' as const, name: 'get_weather', parameters, strict: false }]
    const asked = await answerTo(socket, { ...about, tools, input: 'What is the weather in Oslo?' })
    const call = asked.output.find((item) => item.type === 'function_call')!
    const output = { type: 'function_call_output' as const, call_id: call.call_id, output: '7 degrees' }
    const answered = await answerTo(socket, { ...about, tools, previous_response_id: asked.id, input: [output] })
    expect(JSON.stringify(answered.output)).toContain('7 degrees')
    await expect(answerTo(socket, { ...about, model: 'gpt-4', input: 'x' })).rejects.toThrow(
      /There is no profile "gpt-4"/,
    )
    socket.close()
  },
)
