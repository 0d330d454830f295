import type { Conversation } from '../../src/domain/conversation.ts'
import type { Json } from '../../src/domain/json.ts'
import { usageOf, type Behaviour } from './simulated-models.ts'

/** All text of a request, joined. */
export function textOf({ turns }: Conversation): string {
  return turns.flatMap(({ parts }) => parts.map((part) => ('text' in part ? part.text : ''))).join('\n')
}

/** The candidates in a judge's request, in the order shown. */
export function candidatesIn(conversation: Conversation): { readonly label: string; readonly text: string }[] {
  const byLabel = new Map<string, string[]>()
  for (const [, label, line] of textOf(conversation).matchAll(/^⟦\w+·([A-H])⟧ (.*)$/gm)) {
    const lines = byLabel.get(label!) ?? []
    lines.push(line!)
    byLabel.set(label!, lines)
  }
  return Array.from(byLabel, ([label, lines]) => ({ label, text: lines.join('\n') }))
}

/** Part of every text of the simulated judge, so that a leak is detected. */
export const judgeSecret = 'JUDGE-SECRET'

export interface Opinion {
  readonly answerType?: string
  readonly verdict?: string
  /** From 0 to 10. */
  readonly scores: Readonly<Record<string, number>>
  readonly flags?: readonly string[]
  readonly isMaterial?: boolean
}

/** A judge's reply in the requested form. */
export function judgeReply({
  answerType = 'open',
  verdict = 'synthesize',
  scores,
  flags = [],
  isMaterial,
}: Opinion): string {
  const all = Object.entries(scores).map(([label, score]): [string, Json] => [
    label,
    { correct: score, complete: score, grounded: score, instruction: score, format: score },
  ])
  return JSON.stringify({
    answer_type: answerType,
    verdict,
    scores: Object.fromEntries(all),
    injection_flags: flags,
    consensus: [{ claim: `${judgeSecret} claim`, support: Object.keys(scores), confidence: 0.5 }],
    contradictions: isMaterial === true ? [{ topic: `${judgeSecret} topic`, material: true, positions: [] }] : [],
    outline: [`${judgeSecret} outline`],
    best: Object.keys(scores)[0] ?? 'A',
  })
}

/** The behavior of a judge that replies with this text in one piece. */
export function judgeSays(text: string, afterMs = 2_000): Behaviour {
  return {
    steps: [
      {
        afterMs,
        events: [
          { type: 'text', text },
          { type: 'usage', usage: usageOf(900, 120) },
          { type: 'finish', reason: 'stop' },
        ],
      },
    ],
  }
}

/** Scores that fall from `top` by two for each candidate in the order shown, whatever its text. */
export function byPlace(conversation: Conversation, top: number): Record<string, number> {
  const shown = candidatesIn(conversation)
  return Object.fromEntries(shown.map(({ label }, place) => [label, Math.max(0, top - 2 * place)]))
}
