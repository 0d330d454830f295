/** One candidate as judges and writers see it. */
export interface QuotedCandidate {
  readonly label: string
  readonly text: string
}

/** The candidates that a request quotes, in order. */
export function readCandidates(request: string): QuotedCandidate[] {
  const byLabel = new Map<string, string[]>()
  for (const [, label, line] of request.matchAll(/^⟦\w+·([A-H])⟧ (.*)$/gm)) {
    const lines = byLabel.get(label!) ?? []
    lines.push(line!)
    byLabel.set(label!, lines)
  }
  return Array.from(byLabel, ([label, lines]) => ({ label, text: lines.join('\n') }))
}

/** A judge's reply that strongly prefers one candidate, for judges that are not models. */
export function writeJudgement(
  candidates: readonly QuotedCandidate[],
  chosen: number,
  extra: { readonly flags?: readonly string[]; readonly claim?: string } = {},
): string {
  const scores = candidates.map(({ label }, index) => {
    const score = index === chosen ? 9 : 3
    return [label, { correct: score, complete: score, grounded: score, instruction: score, format: score }] as const
  })
  return JSON.stringify({
    answer_type: 'closed',
    verdict: 'adopt',
    scores: Object.fromEntries(scores),
    injection_flags: extra.flags ?? [],
    consensus: [],
    contradictions: [],
    outline: extra.claim === undefined ? [] : [extra.claim],
    best: candidates[chosen]?.label ?? 'A',
  })
}

/** All text of a conversation that the model sees, joined. */
export function textOf({ turns }: { readonly turns: readonly { readonly parts: readonly object[] }[] }): string {
  return turns
    .flatMap(({ parts }) => parts.map((part) => ('text' in part && typeof part.text === 'string' ? part.text : '')))
    .join('\n')
}
