import type { Conversation, Tool, ToolChoice, Turn } from '../../../domain/conversation.ts'
import { fusionFunctionName } from '../../../domain/profiles.ts'
import type { Draft } from '../../../formats/fields.ts'
import { writerRequest } from '../engine/answer/synthesis-request.ts'
import { toolPrompt } from '../engine/prompts.ts'

/** `declared`: present because it was called before, but not callable again. */
export type ToolPresence = 'offered' | 'declared' | 'absent'

export interface CallingModelRequestOptions {
  /** The caller's conversation, including findings. */
  readonly conversation: Conversation
  readonly since: readonly Turn[]
  readonly presence: ToolPresence
  readonly maxRuns: number
  /** Whether the answer needs a maximum length, so that its worst-case cost is known. */
  readonly isBounded: boolean
}

/** The request for the calling model: the caller's own request, with our tool as a function if the model may use it. */
export function callingModelRequest({
  conversation,
  since,
  presence,
  maxRuns,
  isBounded,
}: CallingModelRequestOptions): Conversation {
  const { toolChoice, parallelToolCalls, ...asked } = writerRequest(conversation, conversation.stream, isBounded)
  // If only our tool is left, it is declared but not callable: providers reject a history of calls without any tools.
  const isShown = presence === 'offered' || (presence === 'declared' && asked.tools.length === 0)
  const tools = isShown ? [...asked.tools, fusionFunction(maxRuns)] : asked.tools
  const request: Draft<Conversation> = { ...asked, turns: [...asked.turns, ...since], tools }
  if (tools.length === 0) return request
  const choice =
    presence === 'declared' && isShown
      ? { type: 'none' as const }
      : // A call of our tool satisfies the tool choice; a run that was not called leaves the choice to the caller's own tools.
        choiceFor(toolChoice, isShown, since.length > 0 || asked.tools.length === 0)
  if (choice !== undefined) request.toolChoice = choice
  if (parallelToolCalls !== undefined) request.parallelToolCalls = parallelToolCalls
  // So that the model's own reasoning goes back to it with the call. Models without reasoning would reject this.
  if (asked.reasoning !== undefined) request.hints = { ...request.hints, sealedReasoning: true }
  return request
}

function choiceFor(choice: ToolChoice | undefined, isShown: boolean, isRelaxed: boolean): ToolChoice | undefined {
  if (choice?.type === 'required') return isRelaxed ? undefined : choice
  if (choice?.type === 'tool') return choice.name === fusionFunctionName ? undefined : choice
  if (choice?.type !== 'allowed') return choice
  const names = isShown ? choice.names : choice.names.filter((name) => name !== fusionFunctionName)
  if (names.length === 0) return { type: 'none' }
  // A tool choice that allows only our tool was satisfied before the model was called.
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
