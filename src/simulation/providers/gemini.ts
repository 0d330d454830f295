import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import type { Exchange } from './behave.ts'
import { callId, type AnswerStamp } from './chat.ts'
import { answerAs, wordsOf, type SimulatedAnswer, type SimulatedCall } from './model.ts'
import { countTokens, type Prompt } from './prompt.ts'
import type { ScriptStep } from './script.ts'

/** The path of a model's methods, under the base URL. */
const method = /\/v1\/models\/([^/]+):(generateContent|streamGenerateContent)(?:\?|$)/

/** Whether a POST to this path is a Gemini answer request. */
export function isGeminiPath(path: string): boolean {
  return path.startsWith('POST ') && method.test(path)
}

/** The body plus what this format puts in the path: `model` and `stream`. Bodies for other paths stay as they are. */
export function withPath(body: JsonObject, url: string): JsonObject {
  const [, model, name] = method.exec(url) ?? []
  if (model === undefined) return body
  return { ...body, model: decodeURIComponent(model), stream: name === 'streamGenerateContent' }
}

/**
 * From Gemini 3 on, Google answers 400 to a call without its signature. Returns that step; undefined if all calls are
 * signed.
 */
export function unsignedStep(body: JsonObject): ScriptStep | undefined {
  const isUnsigned = listOf(body['contents']).some((content) => {
    const first = listOf(content['parts']).find((part) => isObject(part['functionCall']))
    return first !== undefined && typeof first['thoughtSignature'] !== 'string'
  })
  if (!isUnsigned || !textOf(body['model']).startsWith('gemini-3')) return undefined
  const message = 'This is simulated: function call is missing a thought_signature in functionCall parts.'
  const error = { code: 400, message, status: 'INVALID_ARGUMENT' }
  return { do: 'status', status: 400, body: JSON.stringify({ error }) }
}

/** The answers in this format to a body; `text` and `calls` replace the default content. */
export function geminiAnswers(
  name: string,
  body: JsonObject,
  { text, calls }: { readonly text: string | undefined; readonly calls: readonly SimulatedCall[] | undefined },
  stamp: AnswerStamp,
): Pick<Exchange, 'stream' | 'whole' | 'frames' | 'errorFrame' | 'hugeFrame'> {
  const prompt = readPrompt(body)
  const answer = answerAs(name, prompt, text, calls)
  return {
    stream: prompt.stream,
    whole: () => writeWhole(answer, prompt, stamp),
    frames: () => writeFrames(answer, prompt, stamp),
    errorFrame: () => frame({ error: { code: 500, message: 'This is a simulated failure.', status: 'INTERNAL' } }),
    hugeFrame: (bytes) => frame(chunk(answer, prompt, stamp, [{ text: 'x'.repeat(bytes) }])),
  }
}

function readPrompt(body: JsonObject): Prompt {
  const config = objectOf(body['generationConfig'])
  const calling = objectOf(objectOf(body['toolConfig'])['functionCallingConfig'])
  const allowed = calling['allowedFunctionNames']
  const schema = config['responseJsonSchema']
  const thinking = objectOf(config['thinkingConfig'])
  return {
    ...readContents(body),
    model: textOf(body['model']),
    stream: body['stream'] === true,
    tools: listOf(body['tools'])
      .flatMap((tool) => listOf(tool['functionDeclarations']))
      .map((tool) => ({
        kind: 'function',
        name: textOf(tool['name']),
        namespace: undefined,
        parameters: objectOf(tool['parametersJsonSchema']),
      })),
    toolChoice:
      Array.isArray(allowed) && typeof allowed[0] === 'string'
        ? { name: allowed[0] }
        : calling['mode'] === 'ANY'
          ? 'required'
          : calling['mode'] === 'NONE'
            ? 'none'
            : 'auto',
    parallel: true,
    output: isObject(schema) ? { schema } : config['responseMimeType'] === 'application/json' ? 'json' : 'text',
    maxTokens: typeof config['maxOutputTokens'] === 'number' ? config['maxOutputTokens'] : undefined,
    reasons: thinking['includeThoughts'] === true,
    hidesReasoning: false,
    inputTokens: countTokens(JSON.stringify(body['contents'] ?? '')),
    includeUsage: true,
    choices: 1,
    logprobs: config['responseLogprobs'] === true,
  }
}

function writeWhole(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): JsonObject {
  const parts = [...textParts(answer.reasoning, true), ...textParts(answer.text), ...callParts(answer, stamp)]
  return chunk(answer, prompt, stamp, parts, finishOf(answer))
}

/** The last frame has the finish reason, and nothing follows it. */
function* writeFrames(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): Generator<string> {
  const parts = [
    ...wordsOf(answer.reasoning ?? '').flatMap((word) => textParts(word, true)),
    ...wordsOf(answer.text ?? '').flatMap((word) => textParts(word)),
    ...callParts(answer, stamp),
  ]
  for (const part of parts) yield frame(chunk(answer, prompt, stamp, [part]))
  yield frame(chunk(answer, prompt, stamp, [{ text: '' }], finishOf(answer)))
}

function frame(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\r\n\r\n`
}

function chunk(
  answer: SimulatedAnswer,
  prompt: Prompt,
  stamp: AnswerStamp,
  parts: readonly Json[],
  finish?: string,
): JsonObject {
  const end = finish === undefined ? undefined : { finishReason: finish }
  return {
    candidates: [{ content: { role: 'model', parts }, index: 0, ...end }],
    usageMetadata: {
      promptTokenCount: answer.inputTokens,
      candidatesTokenCount: answer.outputTokens - answer.reasoningTokens,
      thoughtsTokenCount: answer.reasoningTokens,
      totalTokenCount: answer.inputTokens + answer.outputTokens,
    },
    modelVersion: prompt.model,
    responseId: stamp.id,
  }
}

function textParts(text: string | undefined, thought = false): Json[] {
  if (text === undefined) return []
  return [thought ? { text, thought } : { text }]
}

/** Only the first of several parallel calls is signed. */
function callParts(answer: SimulatedAnswer, stamp: AnswerStamp): JsonObject[] {
  return answer.calls.map((call, index) => ({
    functionCall: { id: callId(stamp, index), name: call.name, args: JSON.parse(call.arguments) as Json },
    ...(index === 0 ? { thoughtSignature: Buffer.from(`simulated ${stamp.id}`).toString('base64') } : undefined),
  }))
}

function finishOf(answer: SimulatedAnswer): string {
  return answer.finish === 'length' ? 'MAX_TOKENS' : 'STOP'
}

function readContents(body: JsonObject): Pick<Prompt, 'lastUserText' | 'images' | 'files' | 'toolResults'> {
  let lastUserText = ''
  let media: string[] = []
  let toolResults: string[] = []
  for (const content of listOf(body['contents'])) {
    if (content['role'] !== 'user') continue
    const parts = listOf(content['parts'])
    const results = parts.flatMap((part) => (isObject(part['functionResponse']) ? [part['functionResponse']] : []))
    if (results.length > 0) {
      toolResults.push(...results.map((result) => textOf(objectOf(result['response'])['output'])))
      continue
    }
    lastUserText = parts.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : [])).join(' ')
    media = parts.flatMap((part) => {
      const given = objectOf(part['inlineData'] ?? part['fileData'])['mimeType']
      return typeof given === 'string' ? [given] : []
    })
    toolResults = []
  }
  const images = media.filter((type) => type.startsWith('image/')).length
  return { lastUserText, images, files: media.length - images, toolResults }
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}
