import type { Conversation, Tool, ToolChoice, Turn } from '../../domain/conversation.ts'
import { fusionFunctionName } from '../../domain/profiles.ts'
import type { Draft } from '../../formats/fields.ts'
import { toolPrompt } from '../fusion/prompts.ts'
import { writerRequest } from '../fusion/synthesis-request.ts'

/** `declared`: there, because it was called before, but not to be called again. */
export type Presence = 'offered' | 'declared' | 'absent'

export interface OuterOf {
  /** The caller's conversation, with what was found put into it, and what was said since. */
  readonly conversation: Conversation
  readonly since: readonly Turn[]
  readonly presence: Presence
  readonly maxRuns: number
  /** Whether it must have a longest answer, so that its worst case is known. */
  readonly isBounded: boolean
}

/** What the model that answers is asked: the caller's own request, with our tool as a function where it may use it. */
export function outerRequest({ conversation, since, presence, maxRuns, isBounded }: OuterOf): Conversation {
  const { toolChoice, parallelToolCalls, ...asked } = writerRequest(conversation, conversation.stream, isBounded)
  // Where only our tool is left, no tool may be called: a history with calls is refused without any.
  const isShown = presence === 'offered' || (presence === 'declared' && asked.tools.length === 0)
  const tools = isShown ? [...asked.tools, fusionFunction(maxRuns)] : asked.tools
  const request: Draft<Conversation> = { ...asked, turns: [...asked.turns, ...since], tools }
  if (tools.length === 0) return request
  const choice =
    presence === 'declared' && isShown
      ? { type: 'none' as const }
      : // A call of our tool is a call; what was convened without one says nothing of the caller's own tools.
        choiceFor(toolChoice, isShown, since.length > 0 || asked.tools.length === 0)
  if (choice !== undefined) request.toolChoice = choice
  if (parallelToolCalls !== undefined) request.parallelToolCalls = parallelToolCalls
  // So that its own reasoning goes back to it with the call; models without any refuse to be asked.
  if (asked.reasoning !== undefined) request.hints = { ...request.hints, sealedReasoning: true }
  return request
}

function choiceFor(choice: ToolChoice | undefined, isShown: boolean, isRelaxed: boolean): ToolChoice | undefined {
  if (choice?.type === 'required') return isRelaxed ? undefined : choice
  if (choice?.type === 'tool') return choice.name === fusionFunctionName ? undefined : choice
  if (choice?.type !== 'allowed') return choice
  const names = isShown ? choice.names : choice.names.filter((name) => name !== fusionFunctionName)
  if (names.length === 0) return { type: 'none' }
  // What leaves only ours to call was met before the model was asked.
  const isMet = isRelaxed || names.every((name) => name === fusionFunctionName)
  return { ...choice, names, mode: isMet ? 'auto' : choice.mode }
}

function fusionFunction(maxRuns: number): Tool {
  return {
    type: 'function',
    name: fusionFunctionName,
    description: toolPrompt.about(maxRuns),
    parameters: {
      type: 'object',
      properties: {
        question: { type: 'string', description: toolPrompt.question },
        focus: { type: 'array', items: { type: 'string' }, description: toolPrompt.focus },
      },
      required: ['question'],
      additionalProperties: false,
    },
  }
}
