import type { Conversation } from '../../../../domain/conversation.ts'
import type { Draft } from '../../../../formats/fields.ts'
import type { Candidate } from '../candidates.ts'
import type { Fence } from '../fence.ts'
import type { Analysis } from '../judge/analysis.ts'
import { cautiousBytesPerToken, cautiousInputTokens, assumedOutputTokens } from '../measure-conversation.ts'
import type { FusionMember } from '../ports.ts'
import { cautionPrompt, synthesisPrompt } from '../prompts.ts'
import { shortenMiddle } from '../shorten-middle.ts'
import { appendToUser } from '../transcript.ts'

/** All notes together, if the model's window is unknown. */
const maxNotesCharacters = 96_000
/** Share of the remaining window that notes may fill. */
const windowShare = 0.6
const leastNotesCharacters = 4_000
/** A candidate that would be cut to less than this is left out. */
const leastCandidateCharacters = 400

/**
 * The caller's own request, with its tools, format, and limits, for the model that writes the reply. `isBounded` adds
 * a maximum length if the caller set none, because the worst-case cost must be known.
 */
export function writerRequest(conversation: Conversation, isLive: boolean, isBounded: boolean): Conversation {
  const { fusionTool: _, ...asked } = conversation
  const { metadata: __, store: ___, previousResponseId: ____, references: _____, ...hints } = asked.hints
  const request: Draft<Conversation> = {
    ...asked,
    stream: isLive,
    streamUsage: true,
    hints: { ...hints, store: false },
  }
  if (isBounded && request.sampling.maxOutputTokens === undefined)
    request.sampling = { ...request.sampling, maxOutputTokens: assumedOutputTokens }
  return request
}

/** The findings, for the writer of the reply. */
export interface Notes {
  /** Best first. */
  readonly candidates: readonly Candidate[]
  readonly analysis: Analysis | undefined
  readonly fence: Fence
}

/** The writer's request with the notes after the user's words; every line written by others is fenced. */
export function withNotes(
  request: Conversation,
  writer: Pick<FusionMember, 'contextWindow'>,
  { candidates, analysis, fence }: Notes,
): Conversation {
  const prompt = synthesisPrompt(fence.start, analysis !== undefined, request.tools.length > 0)
  const notes = quoteNotes(request, writer, { candidates, analysis, fence })
  return { ...request, turns: appendToUser(request.turns, `\n\n${[prompt, ...notes].join('\n\n')}`) }
}

/** The notes in pieces: the comparison, then as many candidates as the writer's window has room for. */
export function quoteNotes(
  request: Conversation,
  writer: Pick<FusionMember, 'contextWindow'>,
  { candidates, analysis, fence }: Notes,
): string[] {
  const pieces: string[] = []
  let room = roomForNotes(request, writer)
  if (analysis !== undefined) {
    const notes = shortenMiddle(notesOf(analysis), room)
    pieces.push(fence.quote('notes', notes))
    room -= notes.length
  }
  for (const [index, { label, text }] of candidates.entries()) {
    if (index > 0 && room < leastCandidateCharacters) break
    const shown = shortenMiddle(text, Math.max(room, leastCandidateCharacters))
    pieces.push(fence.quote(label, shown))
    room -= shown.length
  }
  return pieces
}

/** The writer's request if nothing in the findings can be trusted. */
export function withCaution(request: Conversation): Conversation {
  return { ...request, turns: appendToUser(request.turns, `\n\n${cautionPrompt}`) }
}

function roomForNotes(request: Conversation, { contextWindow }: Pick<FusionMember, 'contextWindow'>): number {
  if (contextWindow === undefined) return maxNotesCharacters
  const answer = request.sampling.maxOutputTokens ?? assumedOutputTokens
  const left = (contextWindow - cautiousInputTokens(request) - answer) * windowShare * cautiousBytesPerToken
  return Math.floor(Math.min(maxNotesCharacters, Math.max(leastNotesCharacters, left)))
}

/** The comparison as lines of text. It was written by a model that read others' text, so it is quoted like the rest. */
function notesOf(analysis: Analysis): string {
  const by = (labels: readonly string[]): string => (labels.length === 0 ? '' : ` (${labels.join(', ')})`)
  const lines: string[] = []
  const list = (heading: string, entries: readonly string[]): void => {
    if (entries.length > 0) lines.push(heading, ...entries.map((entry) => `- ${entry}`))
  }
  list('Outline', analysis.outline)
  list(
    'Agreed, as weak evidence',
    analysis.consensus.map(({ claim, support }) => claim + by(support)),
  )
  list(
    'Disagreements',
    analysis.contradictions.map(({ topic, positions, side, check }) => {
      const held = positions.map(({ labels, claim }) => `${claim}${by(labels)}`).join('; ')
      const outcome = side.length === 0 ? 'unresolved' : `resolved for ${side.join(', ')}`
      return `${topic}: ${held}. ${outcome}${check === '' ? '' : `; check: ${check}`}`
    }),
  )
  list(
    'Covered by some only',
    analysis.partialCoverage.map(({ labels, point }) => point + by(labels)),
  )
  list(
    'Said by one only',
    analysis.uniqueInsights.map(({ label, insight, keep }) => `${insight} (${label}; ${keep ? 'keep' : 'doubtful'})`),
  )
  list('Missed by all', analysis.blindSpots)
  return lines.join('\n')
}
