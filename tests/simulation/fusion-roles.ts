import { judgePrompt, notesPrompt, panelPrompt, synthesisPrompt } from '../../src/gateway/fusion/engine/prompts.ts'

/** The purpose of a model call; `plain`: it is not part of a fusion, even if its text mentions one. */
export type FusionRole = 'panel' | 'judge' | 'writer' | 'plain'

const signs: readonly (readonly [FusionRole, string])[] = [
  ['panel', 'as if no other answer than yours existed'],
  ['judge', 'candidate answers to one conversation'],
  ['writer', 'For your reply you are handed reference notes'],
]
const prompts = [panelPrompt(0, 20, false), judgePrompt(3, ''), synthesisPrompt('', true, false), notesPrompt('')]
for (const [place, [role, words]] of signs.entries())
  if (prompts.findIndex((prompt) => prompt.includes(words)) !== place || prompts.at(-1)!.includes(words))
    throw new Error(`the words by which a ${role} is known are not its own any more`)

/** Determines the role from a request's text or JSON, both of which contain these words verbatim. */
export function roleIn(text: string): FusionRole {
  return signs.find(([, words]) => text.includes(words))?.[0] ?? 'plain'
}
