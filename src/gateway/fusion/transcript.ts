import type { AssistantPart, Conversation, InputPart, Tool, Turn } from '../../domain/conversation.ts'
import { cutText } from './cut-text.ts'

/** Tool results that are kept as they are, counted from the end, and of each so many characters. */
const keptResults = 6
const maxResultCharacters = 8_192
const maxCallCharacters = 1_024
/** Of the tools that only the final model has. */
const maxToolDescription = 120
const maxToolDigest = 6_000
/** Of the conversation as it is quoted to the judge: of the user's last words, and of all before them. */
const maxLastCharacters = 24_000
const maxEarlierCharacters = 24_000
const maxQuotedImages = 4

/**
 * The turns for a model that has no tools: calls and their results become text, because several providers refuse them
 * where no tools are declared; reasoning belongs to whoever issued it and stays out. Roles still take turns.
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
      const isKept = seen > results - keptResults
      const text = isKept ? cutText(textOf(turn.parts), maxResultCharacters) : 'left out: it is long past'
      const attached = isKept ? turn.parts.filter(({ type }) => type !== 'text') : []
      addTurn(flat, { role: 'user', parts: [{ type: 'text', text: `[tool result: ${text}]` }, ...attached] })
    } else {
      addTurn(flat, turn)
    }
  }
  return flat
}

/** Names and purposes of the tools that the final model has, for models that have none; undefined where there are none. */
export function digestTools(tools: readonly Tool[]): string | undefined {
  if (tools.length === 0) return undefined
  const lines = tools.map((tool) => {
    if (tool.type === 'hosted') return `- ${nameOfHosted(tool.declaration['type'])}`
    const name = tool.namespace === undefined ? tool.name : `${tool.namespace}.${tool.name}`
    const about = (tool.description ?? '').replace(/\s+/g, ' ').slice(0, maxToolDescription)
    return about === '' ? `- ${name}` : `- ${name}: ${about}`
  })
  return cutText(lines.join('\n'), maxToolDigest)
}

/** The conversation as one text for the judge: who said what, the last words of the user whole, the oldest left out first. */
export function transcriptOf({ turns, hints }: Conversation): string {
  const pieces = withoutTools(turns).map((turn) => `[${turn.role}] ${textOf(turn.parts)}`)
  const last = cutText(pieces.pop() ?? '', maxLastCharacters)
  const instructions = hints.instructions === undefined ? [] : [`[system] ${hints.instructions}`]
  const earlier = [...instructions, ...pieces]
  const kept: string[] = []
  let room = maxEarlierCharacters
  for (const piece of earlier.toReversed()) {
    if (room <= 0) break
    kept.unshift(cutText(piece, room))
    room -= piece.length
  }
  const leftOut = earlier.length - kept.length
  return [...(leftOut > 0 ? [`[${leftOut} earlier messages left out]`] : []), ...kept, last].join('\n\n')
}

/** The last pictures of the conversation, for a judge that can see. */
export function imagesOf({ turns }: Conversation): InputPart[] {
  const images = turns.flatMap(({ parts }) =>
    (parts as readonly (InputPart | AssistantPart)[]).filter((part) => part.type === 'image'),
  )
  return images.slice(-maxQuotedImages)
}

/** The turns with a text behind the user's last words: a turn of its own would break templates in which roles take turns. */
export function appendToUser(turns: readonly Turn[], text: string): Turn[] {
  const at = turns.findLastIndex(({ role }) => role === 'user')
  const turn = turns[at]
  const part = { type: 'text', text } as const
  if (turn?.role !== 'user') return [...turns, { role: 'user', parts: [part] }]
  return turns.with(at, { ...turn, parts: [...turn.parts, part] })
}

/** The conversation with an instruction before all others, joined to those that are there: some models read one alone. */
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
  return [{ type: 'text', text: `[tool call: ${part.name} ${cutText(part.arguments, maxCallCharacters)}]` }]
}

/** Adds a turn, joined to the one before it where both are of the same side. */
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
