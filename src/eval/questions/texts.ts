import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'
import { differentFrom, otherThan } from './wrong-answers.ts'

const words =
  'lantern orchard bicycle harbour mirror pepper saddle violin copper meadow tunnel ribbon glacier walnut anchor button compass engine feather ladder'.split(
    ' ',
  )

type Step = readonly [what: string, change: (list: readonly string[]) => string[]]

const steps: readonly Step[] = [
  ['Reverse the order of the words.', (list) => list.toReversed()],
  ['Reverse the letters of every word.', (list) => list.map(mirrored)],
  ['Remove every vowel (a, e, i, o, u) from every word.', (list) => list.map((word) => word.replace(/[aeiou]/g, ''))],
  ['Move the first word to the end.', (list) => [...list.slice(1), ...list.slice(0, 1)]],
  ['Write the last letter of every word twice.', (list) => list.map((word) => word + (word.at(-1) ?? ''))],
  ['Swap the first and the last letter of every word.', (list) => list.map(swapped)],
  ['Remove the second word.', (list) => list.filter((_, index) => index !== 1)],
]

/** Words to change step by step, or letters to count. */
export function drawText(draw: Draw): Drawn {
  return draw.chance(0.7) ? drawSteps(draw) : drawCount(draw)
}

function drawSteps(draw: Draw): Drawn {
  const list = draw.some(words, 4)
  const chosen = draw.some(steps, 3)
  const after = (some: readonly Step[]): string =>
    some.reduce<readonly string[]>((given, [, change]) => change(given), list).join(' ')
  const right = after(chosen)
  const body = [
    `Take these words: ${list.join(' ')}`,
    'Do the following, one step after the other:',
    ...chosen.map(([what], index) => `${index + 1}. ${what}`),
    'Write the result as words with one blank between them.',
  ].join('\n')
  const guesses = [after(chosen.toReversed()), after(chosen.slice(0, 2)), after(chosen.slice(1)), list.join(' ')]
  return {
    body,
    form: '<the words>',
    expected: { kind: 'exact', value: right },
    wrong: otherThan(right, guesses, (step) => `${right}${right.at(-1)!.repeat(step)}`),
  }
}

function drawCount(draw: Draw): Drawn {
  const list = Array.from({ length: draw.whole(7, 11) }, () => draw.one(words))
  const letter = draw.one(['a', 'e', 'n', 'o', 'r', 't'])
  const text = list.join(' ')
  const count = text.split(letter).length - 1
  const inWords = list.filter((word) => word.includes(letter)).length
  return {
    body: `How often does the letter "${letter}" occur in this text, counting every occurrence?\n${text}`,
    form: '<a whole number>',
    expected: { kind: 'number', value: count },
    wrong: differentFrom(
      count,
      [inWords, count - 1, count + 1, count + 2].filter((guess) => guess >= 0),
    ),
  }
}

function mirrored(word: string): string {
  return word.split('').toReversed().join('')
}

function swapped(word: string): string {
  return word.length < 2 ? word : word.at(-1)! + word.slice(1, -1) + word[0]!
}
