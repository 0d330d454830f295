import type { ServerResponse } from 'node:http'
import { roleIn, type FusionRole } from '../simulation/fusion-roles.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { openEventStream, sendJson, startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts'

const usage = { prompt_tokens: 900, completion_tokens: 300, total_tokens: 1200 }

/** A chat completions provider for fusions; `play` decides how it answers each call. */
export async function startDeliberatingUpstream(
  play: (role: FusionRole, response: ServerResponse, body: string) => void | Promise<void>,
): Promise<ScriptedUpstream> {
  const upstream = await startScriptedUpstream()
  upstream.answer = (_request, response) => {
    // Release the bodies, which may be large.
    const body = upstream.bodies.pop()!
    return play(roleIn(body), response, body)
  }
  return upstream
}

/** Sends a non-streaming answer. */
export function sayWhole(response: ServerResponse, content: string): void {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  sendJson(response, JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
}

/** A judge that scores three candidates equally, so that a writer is needed. */
export const undecided = judgeReply({ scores: { A: 6, B: 6, C: 6 } })

/** Starts a streamed answer. */
export function beginStream(response: ServerResponse, text: string): void {
  if (!response.headersSent) openEventStream(response)
  response.write(chunk({ choices: [{ index: 0, delta: { content: text } }] }))
}

/** Ends a streamed answer. */
export function endStream(response: ServerResponse): void {
  response.end(
    `${chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${chunk({ choices: [], usage })}data: [DONE]\n\n`,
  )
}

function chunk(fields: object): string {
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`
}
