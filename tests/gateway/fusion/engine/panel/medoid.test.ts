import { expect, test } from 'vitest'
import { doAgree, rankByMedoid } from '../../../../../src/gateway/fusion/engine/panel/medoid.ts'
import type { PanelAnswer } from '../../../../../src/gateway/fusion/engine/panel/panel.ts'
import { seededRandom } from '../../../../../src/gateway/fusion/engine/seeded-random.ts'
import { simulatedMember } from '../../../../simulation/simulated-models.ts'

function answer(text: string, of: Parameters<typeof simulatedMember>[0] = {}, truncated = false): PanelAnswer {
  return { member: simulatedMember(of), text, truncated }
}

const textsOf = (answers: readonly PanelAnswer[]): string[] => answers.map(({ text }) => text)

test('the most central answer is the one that shares the most with the others', () => {
  const answers = [
    answer('The train leaves at nine and arrives at noon in Oslo.'),
    answer('Bananas are yellow because of what they hold.'),
    answer('I think the train leaves at nine and arrives at noon in Oslo.'),
    answer('The train leaves at nine and arrives at one in Bergen.'),
  ]
  expect(textsOf(rankByMedoid(answers)).at(-1)).toContain('Bananas')
  expect(textsOf(rankByMedoid(answers))[0]).toContain('noon in Oslo')
})

test('agreement within a family counts for little', () => {
  const same = 'The answer to the question is forty-one, as one can see.'
  const other = 'The answer to the question is forty-two, as one can show.'
  const answers = [
    answer(same, { family: 'one' }),
    answer(same, { family: 'one' }),
    answer(other, { family: 'two' }),
    answer(other, { family: 'three' }),
  ]
  expect(textsOf(rankByMedoid(answers))[0]).toBe(other)
})

test('if nothing is shared, quality and form decide', () => {
  expect(textsOf(rankByMedoid([answer('one two three'), answer('four five six', { quality: 95 })]))[0]).toBe(
    'four five six',
  )
  expect(textsOf(rankByMedoid([answer('one two three', {}, true), answer('four five six')]))[0]).toBe('four five six')
  expect(textsOf(rankByMedoid([answer('prose'), answer('{"a":1}')], (text) => text.startsWith('{')))[0]).toBe('{"a":1}')
})

test('answers agree if their words and numbers are the same, in any script', () => {
  expect(doAgree([answer('It is 42.'), answer('it is 42')])).toBe(true)
  expect(doAgree([answer('It is 42.'), answer('It is 43.')])).toBe(false)
  expect(doAgree([answer('答えは四十二です'), answer('答えは四十二です。')])).toBe(true)
  expect(doAgree([answer('答えは四十二です'), answer('分かりません')])).toBe(false)
  expect(doAgree([answer('It is 42.'), answer('It is 42.', {}, true)])).toBe(false)
  expect(doAgree([answer('It is 42.')])).toBe(false)
})

test('eight answers of 24 kB are ranked within 20 ms, and always in the same order', () => {
  const random = seededRandom(4)
  const words = Array.from({ length: 500 }, (_, index) => `word${index}`)
  const texts = Array.from({ length: 8 }, () => {
    let text = ''
    while (text.length < 24_000) text += `${words[Math.floor(random() * words.length)]!} `
    return text
  })
  const answers = texts.map((text) => answer(text))
  const first = textsOf(rankByMedoid(answers))
  let leastMs = Number.POSITIVE_INFINITY
  for (let run = 0; run < 20; run++) {
    const beganMs = performance.now()
    expect(textsOf(rankByMedoid(answers))).toEqual(first)
    leastMs = Math.min(leastMs, performance.now() - beganMs)
  }
  expect(leastMs).toBeLessThan(20)
})
