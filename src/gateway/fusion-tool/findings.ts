import type { Conversation } from '../../domain/conversation.ts'
import type { FusionMemo } from '../../domain/fusion-memo.ts'
import { notesFrom } from '../fusion/deliberate.ts'
import { memoText } from '../fusion/digest.ts'
import type { Fence } from '../fusion/fence.ts'
import type { FusionMember } from '../fusion/ports.ts'
import * as prompts from '../fusion/prompts.ts'
import { quoteNotes, withCaution, withNotes } from '../fusion/synthesis-request.ts'
import { appendToUser } from '../fusion/transcript.ts'
import type { Questions } from './questions.ts'
import type { FailureReason, RunFound } from './runs.ts'

type Window = Pick<FusionMember, 'contextWindow'>

/** What the tool returns to the model that called it: what was found, every foreign line of it fenced. */
export function findingsText(request: Conversation, window: Window, { deliberation }: RunFound): string {
  const notes = notesFrom(deliberation)
  if (notes === undefined) return prompts.distrustPrompt
  const { panel, fence } = deliberation
  const heading = prompts.findingsPrompt(fence.start, panel.answers.length, notes.analysis !== undefined)
  return [heading, ...quoteNotes(request, window, notes)].join('\n\n')
}

/** What it returns where nothing was found. */
export function failureText(reason: FailureReason): string {
  return JSON.stringify(
    reason === 'limit' ? { status: 'error', error: reason } : { status: 'error', failure_reason: reason },
  )
}

/**
 * The conversation with what was found before the model was asked: about the user's own words, or about a question that
 * waited for the caller's tools. Behind the user's words, in the same turn: no history of calls has to be made up, which
 * several providers refuse without the reasoning that led to them.
 */
export function withFindings(
  conversation: Conversation,
  window: Window,
  found: RunFound,
  questions: Questions | undefined,
): Conversation {
  if (questions !== undefined) {
    const text = `${prompts.deferredPrompt(questions.questions)}\n\n${findingsText(conversation, window, found)}`
    return { ...conversation, turns: appendToUser(conversation.turns, `\n\n${text}`) }
  }
  const notes = notesFrom(found.deliberation)
  return notes === undefined ? withCaution(conversation) : withNotes(conversation, window, notes)
}

/** The conversation with what an earlier run of the same user's turn left. */
export function withMemo(conversation: Conversation, memo: FusionMemo | undefined): Conversation {
  const text = memoText(memo)
  return text === undefined ? conversation : { ...conversation, turns: appendToUser(conversation.turns, text) }
}

/** The fence of what a model was shown, for taking its marks out of what it says; undefined where it was shown nothing. */
export function fenceOf({ deliberation }: RunFound): Fence | undefined {
  return notesFrom(deliberation) === undefined ? undefined : deliberation.fence
}
