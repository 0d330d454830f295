import type { AssistantPart, Conversation, InputPart, Tool, Turn } from '../../../domain/conversation.ts'
import { shortenMiddle } from './shorten-middle.ts'

/** How many of the last tool results stay unchanged, and the maximum characters of each. */
const fullResults = 6
const maxResultCharacters = 8_192
const maxCallCharacters = 1_024
/** For the tools that only the final model has. */
const maxToolDescription = 120
const maxToolDigest = 6_000
/** For the conversation as quoted to the judge: the last user message, and everything before it. */
const maxLastCharacters = 24_000
const maxEarlierCharacters = 24_000
const maxQuotedImages = 4

/**
 * The turns for a model without tools: calls and results become text, because several providers reject them if no
 * tools are declared; reasoning is only for its issuer and is left out. Roles still alternate.
 */
export function withoutTools(turns: readonly Turn[]): Turn[] {
  const results = turns.filter(({ role }) => role === 'tool').length
  let seen = 0
  const flat: Turn[] = []
  for (const turn of turns) {
    if (turn.role === 'assistant') {
      const parts = turn.parts.flatMap(flattenPart)
      if (parts.length > 0) addTurn(flat, { role: 'assistant', parts })
    } else if (turn.role === 'tool') {
      seen += 1
      const isShown = seen > results - fullResults
      const text = isShown ? shortenMiddle(textOf(turn.parts), maxResultCharacters) : 'left out: it is long past'
      const attached = isShown ? turn.parts.filter(({ type }) => type !== 'text') : []
      addTurn(flat, { role: 'user', parts: [{ type: 'text', text: `[tool result: ${text}]` }, ...attached] })
    } else {
      addTurn(flat, turn)
    }
  }
  return flat
}

/** Names and purposes of the final model's tools, for models that have none; undefined if there are none. */
export function digestTools(tools: readonly Tool[]): string | undefined {
  if (tools.length === 0) return undefined
  const lines = tools.map((tool) => {
    if (tool.type === 'hosted') return `- ${nameOfHosted(tool.declaration['type'])}`
    const name = tool.namespace === undefined ? tool.name : `${tool.namespace}.${tool.name}`
    const about = (tool.description ?? '').replace(/\s+/g, ' ').slice(0, maxToolDescription)
    return about === '' ? `- ${name}` : `- ${name}: ${about}`
  })
  return shortenMiddle(lines.join('\n'), maxToolDigest)
}

/**
 * The conversation as one text for the judge, with roles: the last user message in full, the oldest messages left out
 * first.
 */
export function transcriptOf({ turns, hints }: Conversation): string {
  const pieces = withoutTools(turns).map((turn) => `[${turn.role}] ${textOf(turn.parts)}`)
  const last = shortenMiddle(pieces.pop() ?? '', maxLastCharacters)
  const instructions = hints.instructions === undefined ? [] : [`[system] ${hints.instructions}`]
  const earlier = [...instructions, ...pieces]
  const shown: string[] = []
  let room = maxEarlierCharacters
  for (const piece of earlier.toReversed()) {
    if (room <= 0) break
    shown.unshift(shortenMiddle(piece, room))
    room -= piece.length
  }
  const leftOut = earlier.length - shown.length
  return [...(leftOut > 0 ? [`[${leftOut} earlier messages left out]`] : []), ...shown, last].join('\n\n')
}

/** The last images of the conversation, for a judge with vision. */
export function imagesOf({ turns }: Conversation): InputPart[] {
  const images = turns.flatMap(({ parts }) =>
    (parts as readonly (InputPart | AssistantPart)[]).filter((part) => part.type === 'image'),
  )
  return images.slice(-maxQuotedImages)
}

/** Appends a text to the last user message: a separate turn would break templates that require alternating roles. */
export function appendToUser(turns: readonly Turn[], text: string): Turn[] {
  const at = turns.findLastIndex(({ role }) => role === 'user')
  const turn = turns[at]
  const part = { type: 'text', text } as const
  if (turn?.role !== 'user') return [...turns, { role: 'user', parts: [part] }]
  return turns.with(at, { ...turn, parts: [...turn.parts, part] })
}

/** Adds an instruction at the start, joined to an existing one, because some models read only one. */
export function withInstruction(conversation: Conversation, text: string): Pick<Conversation, 'turns' | 'hints'> {
  const { turns, hints } = conversation
  if (hints.instructions !== undefined && hints.instructions !== '')
    return { turns, hints: { ...hints, instructions: `${hints.instructions}\n\n${text}` } }
  const first = turns[0]
  const part = { type: 'text', text } as const
  if (first?.role !== 'system' && first?.role !== 'developer')
    return { turns: [{ role: 'system', parts: [part] }, ...turns], hints }
  return { turns: turns.with(0, { ...first, parts: [...first.parts, part] }), hints }
}

function flattenPart(part: AssistantPart): AssistantPart[] {
  if (part.type === 'reasoning') return []
  if (part.type !== 'call') return [part]
  return [{ type: 'text', text: `[tool call: ${part.name} ${shortenMiddle(part.arguments, maxCallCharacters)}]` }]
}

/** Adds a turn, merged into the previous one if both have the same role. */
function addTurn(turns: Turn[], turn: Turn): void {
  const before = turns.at(-1)
  if (before?.role === 'user' && turn.role === 'user') {
    turns[turns.length - 1] = { ...before, parts: [...before.parts, ...turn.parts] }
  } else if (before?.role === 'assistant' && turn.role === 'assistant') {
    turns[turns.length - 1] = { ...before, parts: [...before.parts, ...turn.parts] }
  } else {
    turns.push(turn)
  }
}

function textOf(parts: readonly (InputPart | AssistantPart)[]): string {
  return parts
    .map((part) => ('text' in part ? part.text : part.type === 'call' ? '' : `[${part.type}]`))
    .filter((text) => text !== '')
    .join('\n')
}

function nameOfHosted(type: unknown): string {
  return typeof type === 'string' ? type.slice(0, maxToolDescription) : 'a hosted tool'
}
