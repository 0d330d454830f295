import { judgeAs } from './judge.ts'
import { countTokens, cutToTokens } from './prompt.ts'
import type { Prompt, PromptTool } from './prompt.ts'
import { sampleOf } from './sample.ts'

const longestEcho = 80
const maxCities = 4
const defaultCity = 'Paris'
/** Topics in the user's message, and the tool that each one calls. */
const topics = [
  [/\bweather\b/i, /weather/i],
  [/\bconsult other models\b/i, /^svc_router_fusion$/],
] as const

/** The simulated model's answer: text or calls, optionally after reasoning. */
export interface SimulatedAnswer {
  readonly reasoning: string | undefined
  readonly text: string | undefined
  readonly calls: readonly SimulatedCall[]
  readonly finish: 'stop' | 'length' | 'tool_calls'
  readonly inputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

export interface SimulatedCall {
  readonly kind: 'function' | 'custom'
  readonly name: string
  readonly namespace: string | undefined
  /** JSON text of a function's arguments, or the input of a custom tool. */
  readonly arguments: string
}

/**
 * Answers deterministically: the same prompt gets the same answer, which says that it is simulated. `text` and
 * `scripted` calls replace the default content.
 */
export function answerAs(
  name: string,
  prompt: Prompt,
  text?: string,
  scripted?: readonly SimulatedCall[],
): SimulatedAnswer {
  const reasoning = prompt.reasons
    ? `**Simulated reasoning** The simulated model ${name} read the question and answers it.`
    : undefined
  const reasoningTokens = reasoning === undefined ? 0 : countTokens(reasoning)
  const calls = scripted ?? (text === undefined ? chooseCalls(prompt) : [])
  if (calls.length > 0) {
    const written = calls.reduce((sum, call) => sum + countTokens(call.name) + countTokens(call.arguments), 0)
    const outputTokens = written + reasoningTokens + countTokens(text ?? '')
    return {
      reasoning,
      text,
      calls,
      finish: 'tool_calls',
      inputTokens: prompt.inputTokens,
      outputTokens,
      reasoningTokens,
    }
  }
  const full = text ?? sayText(name, prompt)
  const said = prompt.maxTokens === undefined ? full : cutToTokens(full, prompt.maxTokens)
  return {
    reasoning,
    text: said,
    calls: [],
    finish: said.length < full.length ? 'length' : 'stop',
    inputTokens: prompt.inputTokens,
    outputTokens: countTokens(said) + reasoningTokens,
    reasoningTokens,
  }
}

function sayText(name: string, prompt: Prompt): string {
  const judgement = judgeAs(name, prompt.lastUserText)
  if (judgement !== undefined) return judgement
  const echo = shorten(prompt.lastUserText)
  if (prompt.output === 'json')
    return JSON.stringify({ simulated: true, answer: `This is a simulated answer from ${name}.` })
  if (prompt.output !== 'text') {
    const { schema } = prompt.output
    return JSON.stringify(sampleOf(schema, () => `simulated by ${name}`))
  }
  const sentences = [`This is a simulated answer from ${name}.`]
  if (prompt.toolResults.length > 0) {
    sentences.push(...prompt.toolResults.map((result) => `The tool answered: "${shorten(result)}".`))
  } else if (echo !== '') sentences.push(`You said: "${echo}".`)
  if (prompt.images > 0) sentences.push(`I received ${prompt.images} ${prompt.images === 1 ? 'image' : 'images'}.`)
  if (prompt.files > 0) sentences.push(`I received ${prompt.files} ${prompt.files === 1 ? 'file' : 'files'}.`)
  return sentences.join(' ')
}

function chooseCalls(prompt: Prompt): SimulatedCall[] {
  const { tools, toolChoice } = prompt
  if (toolChoice === 'none') return []
  if (typeof toolChoice === 'object') {
    const named = tools.find((tool) => tool.name === toolChoice.name)
    // A forced choice is repeated in every turn's request: calling again despite a result would loop forever.
    return named === undefined || prompt.toolResults.length > 0 ? [] : callsOf(named, prompt)
  }
  if (prompt.toolResults.length > 0) return []
  const mentioned = topics.flatMap(([topic, name]) =>
    topic.test(prompt.lastUserText) ? tools.filter((tool) => name.test(tool.name)).slice(0, 1) : [],
  )
  const chosen = mentioned.length === 0 && toolChoice === 'required' ? tools.slice(0, 1) : mentioned
  return (prompt.parallel ? chosen : chosen.slice(0, 1)).flatMap((tool) => callsOf(tool, prompt))
}

function callsOf(tool: PromptTool, prompt: Prompt): SimulatedCall[] {
  const { kind, name, namespace } = tool
  if (kind === 'custom') return [{ kind, name, namespace, arguments: 'simulated input' }]
  if (!/weather/i.test(name))
    return [{ kind, name, namespace, arguments: JSON.stringify(argumentsOf(tool, undefined)) }]
  const cities = citiesIn(prompt.lastUserText)
  return (prompt.parallel ? cities : cities.slice(0, 1)).map((city) => ({
    kind,
    name,
    namespace,
    arguments: JSON.stringify(argumentsOf(tool, city)),
  }))
}

function argumentsOf(tool: PromptTool, city: string | undefined): unknown {
  const schema = { type: 'object', ...tool.parameters }
  return sampleOf(schema, (property) => {
    if (property === 'question') return 'What do others say to this?'
    return /city|location|place|town|where|query/i.test(property) ? city : undefined
  })
}

/** The places after `in`, `for` or `at`: `weather in Oslo and San Francisco`. */
function citiesIn(text: string): string[] {
  const place = String.raw`\p{Lu}[\p{L}'.-]*(?: \p{Lu}[\p{L}'.-]*){0,3}`
  const list = new RegExp(
    String.raw`\b(?:in|for|at) (${place}(?:(?:, and |, | and | & )${place}){0,${maxCities}})`,
    'u',
  )
  const found = list.exec(text.slice(0, 10_000))?.[1]
  if (found === undefined) return [defaultCity]
  return found
    .split(/, and |, | and | & /)
    .map((city) => city.replace(/\.$/, ''))
    .slice(0, maxCities)
}

function shorten(text: string): string {
  const flat = text
    .slice(0, longestEcho * 4)
    .replace(/\s+/g, ' ')
    .trim()
  return flat.length > longestEcho ? `${flat.slice(0, longestEcho).trimEnd()}…` : flat
}

/** Splits a text into the chunks in which it is streamed: word by word. */
export function wordsOf(text: string): string[] {
  return text.match(/\S*\s+|\S+$/g) ?? []
}
