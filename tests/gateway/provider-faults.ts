import type { FormatId } from '../../src/domain/format-id.ts'

/** Text from a provider that no client may see. */
export const providerText = 'PROVIDER TEXT at 10.0.0.7'

/** A successful answer of a format, as a stream in three parts and non-streaming; both end for `reason`. */
interface GoodAnswer {
  readonly opening: string
  /** One event with this text, given as the inside of a JSON string. */
  readonly delta: (text: string) => string
  readonly ending: (reason: string) => string
  readonly whole: (reason: string) => string
  readonly success: string
}

const named = (json: string): string => `event: ${/"type":"([^"]+)"/.exec(json)![1]}\ndata: ${json}\n\n`

export const goodAnswers: Readonly<Record<Exclude<FormatId, 'openai-embeddings'>, GoodAnswer>> = {
  'openai-chat': {
    opening: 'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n',
    delta: (text) => `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`,
    ending: (reason) =>
      `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"${reason}"}]}\n\ndata: [DONE]\n\n`,
    whole: (reason) =>
      `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"${reason}"}]}`,
    success: 'stop',
  },
  'openai-completions': {
    opening: 'data: {"id":"c","model":"m","choices":[{"index":0,"text":""}]}\n\n',
    delta: (text) => `data: {"id":"c","model":"m","choices":[{"index":0,"text":"${text}"}]}\n\n`,
    ending: (reason) =>
      `data: {"id":"c","model":"m","choices":[{"index":0,"text":"","finish_reason":"${reason}"}]}\n\ndata: [DONE]\n\n`,
    whole: (reason) => `{"id":"c","model":"m","choices":[{"index":0,"text":"x","finish_reason":"${reason}"}]}`,
    success: 'stop',
  },
  'openai-responses': {
    opening:
      named(
        '{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"m","status":"in_progress"}}',
      ) +
      named(
        '{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"i"}}',
      ),
    delta: (text) =>
      named(
        `{"type":"response.output_text.delta","sequence_number":2,"output_index":0,"item_id":"i","delta":"${text}"}`,
      ),
    ending: (reason) =>
      named(
        reason === 'completed'
          ? '{"type":"response.completed","sequence_number":9,"response":{"id":"r","model":"m","status":"completed","output":[]}}'
          : `{"type":"response.incomplete","sequence_number":9,"response":{"id":"r","model":"m","status":"incomplete","incomplete_details":{"reason":"${reason}"},"output":[]}}`,
      ),
    whole: (reason) =>
      `{"id":"r","model":"m",${reason === 'completed' ? '"status":"completed"' : `"status":"incomplete","incomplete_details":{"reason":"${reason}"}`},"output":[]}`,
    success: 'completed',
  },
  'anthropic-messages': {
    opening:
      named('{"type":"message_start","message":{"id":"m","type":"message","model":"m","content":[]}}') +
      named('{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'),
    delta: (text) => named(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}`),
    ending: (reason) =>
      named('{"type":"content_block_stop","index":0}') +
      named(`{"type":"message_delta","delta":{"stop_reason":"${reason}"}}`) +
      named('{"type":"message_stop"}'),
    whole: (reason) =>
      `{"id":"m","type":"message","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"${reason}"}`,
    success: 'end_turn',
  },
  gemini: {
    opening: 'data: {"responseId":"g","candidates":[{"content":{"parts":[{"text":""}]}}]}\n\n',
    delta: (text) => `data: {"candidates":[{"content":{"parts":[{"text":"${text}"}]}}]}\n\n`,
    ending: (reason) => `data: {"candidates":[{"finishReason":"${reason}"}]}\n\n`,
    whole: (reason) => `{"candidates":[{"content":{"parts":[]},"finishReason":"${reason}"}]}`,
    success: 'STOP',
  },
}

const bodies: Readonly<Record<string, string>> = {
  'an error': `{"error":{"message":"${providerText}"}}`,
  'an error’s text': `{"error":"${providerText}"}`,
  'a message': `{"message":"${providerText}"}`,
  'a detail': `{"detail":"${providerText}"}`,
  details: `{"detail":[{"msg":"${providerText}"}],"status":500}`,
  'the object error': `{"object":"error","message":"${providerText}","code":500}`,
  'the type error': `{"type":"error","error":{"type":"api_error","message":"${providerText}"}}`,
  'an error beside choices': `{"choices":[],"candidates":[],"type":"response.x","error":{"message":"${providerText}"}}`,
  text: providerText,
  'a JSON string': `"${providerText}"`,
  'a list': `[{"error":{"message":"${providerText}"}}]`,
  HTML: `<html><body>${providerText}</body></html>`,
  'a JSON that is cut': `{"choices":[{"index":0,"delta":{"content":"${providerText}`,
  null: 'null',
  'an empty object': '{}',
}

/** Events that no format has: none may be passed on, and no later event makes the answer successful. */
export const faultyEvents: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(bodies).map(([what, data]) => [`data: ${what}`, `data: ${data}\n\n`])),
  ...Object.fromEntries(
    Object.entries(bodies).map(([what, data]) => [`event error: ${what}`, `event: error\ndata: ${data}\n\n`]),
  ),
  ...Object.fromEntries(Object.entries(bodies).map(([what, data]) => [`no event: ${what}`, `${data}\n\n`])),
  'event error without data': 'event: error\n\n',
  'the field error': `error: {"code":500,"message":"${providerText}"}\n\n`,
}

/** Bodies that are not answers. */
export const faultyBodies: Readonly<Record<string, string>> = {
  ...bodies,
  nothing: '',
  'an error beside an answer': `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"output":[],"content":[],"candidates":[{"finishReason":"STOP"}],"error":{"message":"${providerText}"}}`,
}

/** Finish reasons that mean failure or are unknown. */
export const unknownReasons = [
  'abort',
  'error',
  'ABORTED',
  'network_error',
  'insufficient_system_resource',
  'toString',
  'new_in_2027',
]

/** Events without content that are not faults: keep-alives, and vendors' own events. */
export const beside: Readonly<Record<string, string>> = {
  'an event without data': 'data:\n\n',
  'a named ping without data': 'event: ping\ndata: \n\n',
  'a named ping': 'event: ping\ndata: {"type":"ping"}\n\n',
  'a comment': ': keep-alive\n\n',
}

/** Events whose content is not text (contract 10.6). */
export const malformedDeltas: Readonly<Record<keyof typeof goodAnswers, string>> = {
  'openai-chat': `data: {"choices":[{"index":0,"delta":{"content":{"a":"${providerText}"}}}]}\n\n`,
  'openai-completions': `data: {"choices":[{"index":0,"text":{"a":"${providerText}"}}]}\n\n`,
  'openai-responses': named(
    `{"type":"response.output_text.delta","sequence_number":2,"output_index":0,"item_id":"i","delta":{"a":"${providerText}"}}`,
  ),
  'anthropic-messages': named(
    `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":{"a":"${providerText}"}}}`,
  ),
  gemini: `data: {"candidates":[{"content":{"parts":[{"text":{"a":"${providerText}"}}]}}]}\n\n`,
}

/** JSON that can be parsed, but not traversed recursively. */
const deep = (open: string, inside: string, close: string): string =>
  open.repeat(100_000) + inside + close.repeat(100_000)
const deepList = deep('[', '', ']')
const deepObject = deep('{"a":', '1', '}')

/** The same JSON object (or event with it) with an additional member that nests too deep. */
export function withDeepMember(json: string, isObject: boolean): string {
  return json.replace('{', () => `{"x":${isObject ? deepObject : deepList},`)
}

/** Non-streaming answers with a call whose arguments nest too deep; text completions have no calls. */
export const deepCalls: Readonly<Partial<Record<keyof typeof goodAnswers, string>>> = {
  'openai-chat': JSON.stringify({
    id: 'c',
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: deepObject } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
  }),
  'openai-responses': JSON.stringify({
    id: 'r',
    model: 'm',
    status: 'completed',
    output: [{ type: 'function_call', id: 'i', call_id: 't', name: 'f', arguments: deepObject }],
  }),
  'anthropic-messages': `{"id":"m","type":"message","model":"m","content":[{"type":"tool_use","id":"t","name":"f","input":${deepObject}}],"stop_reason":"tool_use"}`,
  gemini: `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${deepObject}}}]},"finishReason":"STOP"}]}`,
}

/** How vendors report an error inside an answer with status 200, as members of any of its objects. */
export const vendorErrors: Readonly<Record<string, string>> = {
  MiniMax: `"base_resp":{"status_code":1004,"status_msg":"${providerText}"}`,
  'MiniMax with an unknown code': '"base_resp":{"status_code":9999}',
  Baidu: `"error_code":336003,"error_msg":"${providerText}"`,
  Cloudflare: `"success":false,"errors":[{"code":7003,"message":"${providerText}"}],"result":null`,
  'a list of errors': `"errors":[{"message":"${providerText}"}]`,
  Spark: `"code":10163,"message":"${providerText}"`,
  DashScope: `"code":"InvalidApiKey","message":"${providerText}"`,
  Zhipu: `"code":1001,"msg":"${providerText}"`,
  iFlow: `"status":"449","msg":"${providerText}"`,
  'a failed status': `"status":"error","message":"${providerText}"`,
  FastAPI: `"detail":"${providerText}"`,
  'a validation error': `"detail":[{"msg":"${providerText}"}]`,
}

/** The same members, as vendors write them in every good answer. */
export const vendorSuccesses = [
  '"base_resp":{"status_code":0,"status_msg":""}',
  '"base_resp":{"status_code":0,"status_msg":"success"}',
  '"code":0,"msg":"Success"',
  '"code":"200","msg":"OK"',
  '"success":true,"errors":[]',
  '"error_code":0,"error_msg":""',
  '"error":null,"errors":null,"detail":null',
  '"error":{"message":"","type":"","param":"","code":null}',
  '"error":false,"errors":{}',
]

/** Adds members to the end of every JSON object in a stream's events, or of a whole answer. */
export function withMembers(text: string, members: string): string {
  return text.replaceAll(/\}(?=\n\n|$)/g, () => `,${members}}`)
}
