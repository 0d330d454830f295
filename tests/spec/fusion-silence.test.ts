import { expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer } from './fused-answers.ts'

/** An agent that disconnects after three seconds of silence must not disconnect (decision 25). */
const longestSilenceMs = 3_000
const watchedMs = 5_000

const model = 'svc-router/fusion'
const silence: ScriptStep = { do: 'silence', repeat: true }
const judged = answer(judgeReply({ scores: { A: 6, B: 6, C: 6 } }))
const bodies = {
  '/chat/completions': { model, stream: true, messages: [{ role: 'user', content: 'How many?' }] },
  '/responses': { model, stream: true, input: 'How many?' },
  '/messages': { model, stream: true, max_tokens: 900, messages: [{ role: 'user', content: 'How many?' }] },
} as const
/** When the silence occurs, and the scripts of the three members. */
const silences: Readonly<Record<string, readonly (readonly ScriptStep[])[]>> = {
  'before any member has answered': [[silence], [silence], [silence]],
  'while the judge compares the answers': [
    [answer('Forty.'), silence],
    [answer('Fifty.'), silence],
    [answer('Sixty.'), silence],
  ],
  'during the answer': [
    [answer('Forty.'), judged, { do: 'stall', afterEvents: 8, words: 30 }],
    [answer('Fifty.')],
    [answer('Sixty.')],
  ],
}

/** Matches events that an agent counts as activity. Comments do not count. */
const event = /^event: |^data: \{/m

async function longestGapMs(path: string, body: object, scripts: readonly (readonly ScriptStep[])[]): Promise<number> {
  const service = await Service.start()
  try {
    for (const [index, steps] of scripts.entries()) service.providers[index]!.script(steps)
    const begunMs = performance.now()
    const reader = (await service.post(path, body)).body!.getReader()
    const decoder = new TextDecoder()
    const atMs = [begunMs]
    while (performance.now() - begunMs < watchedMs) {
      const { value, done } = await reader.read()
      expect(done).toBe(false)
      const text = decoder.decode(value, { stream: true })
      if (path === '/chat/completions' || event.test(text)) atMs.push(performance.now())
    }
    await reader.cancel()
    return Math.max(...atMs.slice(1).map((ms, index) => ms - atMs[index]!))
  } finally {
    await service.stop()
  }
}

test.concurrent.each(Object.entries(silences))(
  'with default settings a fused stream is never silent for three seconds: %s',
  async (_, scripts) => {
    const gaps = await Promise.all(Object.entries(bodies).map(([path, body]) => longestGapMs(path, body, scripts)))
    for (const gapMs of gaps) expect(gapMs).toBeLessThan(longestSilenceMs)
  },
)

test.concurrent('a stream with the fusion tool is not silent either while the panel is', async () => {
  const tools = [{ type: 'svc-router:fusion', parameters: { mode: 'always' } }]
  const gaps = await Promise.all(
    Object.entries(bodies).map(([path, body]) =>
      longestGapMs(path, { ...body, model: 'svc-router/frontier', tools }, [[silence], [silence], [silence]]),
    ),
  )
  for (const gapMs of gaps) expect(gapMs).toBeLessThan(longestSilenceMs)
})
