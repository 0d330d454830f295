import type { Conversation } from '../../../domain/conversation.ts'
import type { FusionMemo } from '../../../domain/fusion-memo.ts'
import { quoteNotes, withCaution, withNotes } from '../engine/answer/synthesis-request.ts'
import { notesFrom } from '../engine/deliberate.ts'
import { memoText } from '../engine/digest.ts'
import type { Fence } from '../engine/fence.ts'
import type { FusionMember } from '../engine/ports.ts'
import * as prompts from '../engine/prompts.ts'
import { appendToUser } from '../engine/transcript.ts'
import type { Questions } from './questions.ts'
import type { FailureReason, ToolRunFindings } from './tool-runs.ts'

type Window = Pick<FusionMember, 'contextWindow'>

/** The tool's result for the model that called it: the findings, with every line from other models fenced. */
export function findingsText(request: Conversation, window: Window, { deliberation }: ToolRunFindings): string {
  const notes = notesFrom(deliberation)
  if (notes === undefined) return prompts.distrustPrompt
  const { panel, fence } = deliberation
  const heading = prompts.findingsPrompt(fence.start, panel.answers.length, notes.analysis !== undefined)
  return [heading, ...quoteNotes(request, window, notes)].join('\n\n')
}

/** The tool's result if there are no findings. */
export function failureText(reason: FailureReason): string {
  return JSON.stringify(
    reason === 'limit' ? { status: 'error', error: reason } : { status: 'error', failure_reason: reason },
  )
}

/**
 * The conversation with findings from before the calling model was called: about the user's own words, or about a
 * question that waited for the caller's tools. They are appended to the user's turn, so that no history of calls has
 * to be made up, which several providers reject without the reasoning that led to them.
 */
export function withFindings(
  conversation: Conversation,
  window: Window,
  found: ToolRunFindings,
  questions: Questions | undefined,
): Conversation {
  if (questions !== undefined) {
    const text = `${prompts.deferredPrompt(questions.questions)}\n\n${findingsText(conversation, window, found)}`
    return { ...conversation, turns: appendToUser(conversation.turns, `\n\n${text}`) }
  }
  const notes = notesFrom(found.deliberation)
  return notes === undefined ? withCaution(conversation) : withNotes(conversation, window, notes)
}

/** The conversation with the findings of an earlier run in the same user turn. */
export function withMemo(conversation: Conversation, memo: FusionMemo | undefined): Conversation {
  const text = memoText(memo)
  return text === undefined ? conversation : { ...conversation, turns: appendToUser(conversation.turns, text) }
}

/**
 * The fence of the findings that a model was shown, for removing its marks from the model's text; undefined if it was
 * shown none.
 */
export function fenceOf({ deliberation }: ToolRunFindings): Fence | undefined {
  return notesFrom(deliberation) === undefined ? undefined : deliberation.fence
}
