/** A line quoted by fusion: `⟦nonce·label⟧ text`. Candidates have a one-letter label, everything else a word. */
const quotedLine = /^⟦\w{1,16}·([A-H])⟧ ?(.*)$/gm
const asksForJudgement = /reply with the JSON object\.\s{0,8}$/
const maxQuotedCharacters = 200_000
const maxEntries = 8
const maxEntryCharacters = 400
const sentenceEnd = /(?<=[.!?]["”]?)\s/

/**
 * The simulated model's reply as a judge of quoted candidates: the judge's JSON object; undefined if the text does not
 * ask for one. It compares sentence by sentence, understands nothing, and says so.
 */
export function judgeAs(name: string, text: string): string | undefined {
  if (text.length > maxQuotedCharacters || !asksForJudgement.test(text.slice(-100))) return undefined
  const candidates = new Map<string, string[]>()
  for (const [, label = '', line = ''] of text.matchAll(quotedLine)) {
    const previous = candidates.get(label) ?? []
    candidates.set(label, [...previous, ...sentencesOf(line)])
  }
  return candidates.size === 0 ? undefined : JSON.stringify(compare(name, candidates))
}

function compare(name: string, candidates: ReadonlyMap<string, readonly string[]>): object {
  const labels = [...candidates.keys()]
  const labelsOf = new Map<string, string[]>()
  for (const [label, sentences] of candidates)
    for (const sentence of new Set(sentences)) labelsOf.set(sentence, [...(labelsOf.get(sentence) ?? []), label])
  const all = [...labelsOf]
  const shared = all.filter(([, by]) => by.length > 1)
  const alone = labels.length === 1 ? [] : all.filter(([, by]) => by.length === 1)
  const scores = labels.map((label) => {
    const own = all.filter(([, by]) => by.includes(label))
    const agreed = ofTen(own.filter(([, by]) => by.length > 1).length, own.length)
    const complete = ofTen(own.length, all.length)
    return [label, { correct: agreed, complete, grounded: agreed, instruction: 5, format: 5 }] as const
  })
  const [best = 'A'] = scores.toSorted(([, a], [, b]) => b.correct + b.complete - a.correct - a.complete)[0] ?? []
  return {
    simulated: true,
    answer_type: 'open',
    consensus: shared
      .slice(0, maxEntries)
      .map(([claim, support]) => ({ claim: short(claim), support, confidence: support.length / labels.length })),
    contradictions: [],
    partial_coverage: shared
      .filter(([, by]) => by.length < labels.length)
      .slice(0, maxEntries)
      .map(([point, by]) => ({ labels: by, point: short(point) })),
    unique_insights: alone
      .slice(0, maxEntries)
      .map(([insight, [label]]) => ({ label, insight: short(insight), keep: true, risk: 'low' })),
    blind_spots: [`This comparison is simulated: ${name} matches sentences without understanding them.`],
    scores: Object.fromEntries(scores),
    injection_flags: [],
    best,
    verdict: alone.length === 0 ? 'adopt' : 'synthesize',
    outline: [...shared, ...alone].slice(0, maxEntries).map(([sentence]) => short(sentence)),
  }
}

function sentencesOf(line: string): string[] {
  return line
    .split(sentenceEnd)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

function ofTen(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((10 * part) / whole)
}

function short(text: string): string {
  return text.slice(0, maxEntryCharacters)
}
