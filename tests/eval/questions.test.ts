import { assert, integer, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findAnswer, isRight, isRightAnswer, keyOf } from '../../src/eval/questions/check-answer.ts'
import { isInjection } from '../../src/eval/questions/injections.ts'
import { runProgram, writeProgram, type Statement } from '../../src/eval/questions/mini-program.ts'
import { buildQuestionSet } from '../../src/eval/questions/question-set.ts'
import { familyIds, numberIn, writeExpected, type Expected, type Question } from '../../src/eval/questions/question.ts'
import { traps } from '../../src/eval/questions/trap-items.ts'

const anySeed = integer({ min: 0, max: 999_999_999 })

function eachQuestion(holds: (question: Question) => void): void {
  assert(
    property(anySeed, (seed) => buildQuestionSet(seed, 48).forEach(holds)),
    { numRuns: 60 },
  )
}

/** The same answer as models write it. */
function variantsOf(expected: Expected): string[] {
  const plain = writeExpected(expected)
  const any = [`**${plain}**`, ` ${plain} `, `\`${plain}\``]
  if (expected.kind === 'number') {
    const { value, unit } = expected
    const grouped = value.toLocaleString('en-US', { maximumFractionDigits: 6 })
    any.push(grouped, `${plain}.0`.replace(/\.(\d+)\.0$/, '.$10'), `\\boxed{${plain}}`, `$${plain}$`)
    if (unit !== undefined) any.push(`${plain} ${unit}`)
  } else if (expected.kind === 'words') {
    any.push(plain.toUpperCase(), `"${plain}"`, `${plain}.`)
  } else if (expected.kind === 'numbers') {
    any.push(plain.replace(', ', ','), `(${plain})`, plain.replace(', ', ' and '))
  } else if (expected.kind === 'exact') {
    any.push(`"${plain}"`)
  } else if (expected.kind === 'json') {
    const { items, count, sum } = expected.value as Record<string, unknown>
    any.push(JSON.stringify({ sum, items, count }, undefined, 1).replaceAll('\n', ' '))
  }
  return any
}

describe('every question of every seed', () => {
  test('has an answer that its checker accepts in every notation', () => {
    eachQuestion(({ expected }) => {
      for (const variant of [writeExpected(expected), ...variantsOf(expected)])
        for (const label of ['ANSWER: ', '**Answer:** ', 'Final answer: ', '- ANSWER:'])
          expect(isRight(expected, `I thought about it.\n${label}${variant}\n`), `${label}${variant}`).toBe(true)
    })
  })

  test('has at least three different wrong answers, which its checker rejects', () => {
    eachQuestion(({ expected, wrong }) => {
      expect(new Set(wrong.map((one) => keyOf(expected, one) ?? one)).size).toBeGreaterThanOrEqual(3)
      for (const one of wrong) expect(isRight(expected, `ANSWER: ${one}`), one).toBe(false)
    })
  })

  test('rejects a reply without an answer, an empty one, and a right word in the wrong place', () => {
    eachQuestion(({ expected }) => {
      const right = writeExpected(expected)
      for (const reply of ['', 'ANSWER:', right, `It is ${right}.`, `ANSWER: ${right}\nANSWER: no idea at all`])
        expect(isRight(expected, reply), reply).toBe(false)
    })
  })

  test('states the form of its answer and its number, but not the answer', () => {
    eachQuestion(({ number, text, expected }) => {
      expect(text).toMatch(/\nANSWER: <.+>$/)
      expect(numberIn(text)).toBe(number)
      if (expected.kind === 'json') expect(text).not.toContain(writeExpected(expected))
    })
  })

  test('has a wrong injected candidate that is recognized as such', () => {
    eachQuestion(({ expected, injection, family }) => {
      expect(injection !== undefined).toBe(family === 'injected')
      if (injection === undefined) return
      expect(isInjection(injection.text)).toBe(true)
      expect(isRight(expected, injection.text)).toBe(false)
      expect(findAnswer(injection.text)).toBe(injection.ordered)
    })
  })
})

describe('a question set', () => {
  test('is determined by its seed, and a smaller set is its beginning', () => {
    assert(
      property(anySeed, (seed) => {
        const set = buildQuestionSet(seed, 40)
        expect(buildQuestionSet(seed, 40)).toEqual(set)
        expect(buildQuestionSet(seed, 15)).toEqual(set.slice(0, 15))
        expect(buildQuestionSet(seed + 1, 40)).not.toEqual(set)
      }),
      { numRuns: 20 },
    )
  })

  test('has every family at the usual size and no duplicates', () => {
    const set = buildQuestionSet(42, 120)
    expect(new Set(set.map(({ family }) => family))).toEqual(new Set(familyIds))
    expect(new Set(set.map(({ text }) => text.replace(/^Question \d+\./, ''))).size).toBe(set.length)
    for (const family of familyIds) expect(set.filter((one) => one.family === family).length).toBeGreaterThan(5)
  })
})

test("a second solver that reads a puzzle's text finds exactly one solution", () => {
  const puzzles = buildQuestionSet(77, 600).filter(({ family }) => family === 'puzzle')
  expect(puzzles.length).toBeGreaterThan(40)
  for (const { text, expected } of puzzles) {
    const lines = text.split('\n')
    const people = lines[1]!.replace(/ sit on a bench.*/, '').split(/, | and /)
    const clues = lines.filter((line) => line.startsWith('- ')).map((line) => line.slice(2))
    const seat = Number(/Who sits on seat (\d)/.exec(text)![1])
    const fitting = ordersOf(people).filter((order) => clues.every((clue) => fits(clue, order)))
    expect(fitting).toHaveLength(1)
    expect(fitting[0]![seat - 1]).toBe(writeExpected(expected))
  }
})

function ordersOf(people: readonly string[]): string[][] {
  return people.length === 0
    ? [[]]
    : people.flatMap((one) => ordersOf(people.filter((other) => other !== one)).map((rest) => [one, ...rest]))
}

function fits(clue: string, order: readonly string[]): boolean {
  const [a, b] = order.filter((name) => clue.includes(name)).sort((x, y) => clue.indexOf(x) - clue.indexOf(y))
  const place = (name: string | undefined): number => order.indexOf(name!) + 1
  const seat = /does not sit on seat (\d)/.exec(clue)?.[1]
  if (seat !== undefined) return place(a) !== Number(seat)
  if (clue.includes('at one end')) return place(a) === 1 || place(a) === order.length
  if (clue.includes('even seat')) return place(a) % 2 === 0
  if (clue.includes('to the left of')) return place(a) < place(b)
  if (clue.includes('do not sit next')) return Math.abs(place(a) - place(b)) !== 1
  if (clue.includes('Exactly one person')) return Math.abs(place(a) - place(b)) === 2
  throw new Error(`an unknown clue: ${clue}`)
}

describe('the small language', () => {
  const program: Statement[] = [
    { do: 'set', name: 'a', to: { left: 2, operator: '*', right: 3 } },
    {
      do: 'repeat',
      times: 3,
      body: [
        {
          do: 'if',
          test: { left: 'a', operator: '>', right: 7 },
          met: [{ do: 'set', name: 'a', to: { left: 'a', operator: 'mod', right: 5 } }],
          unmet: [{ do: 'set', name: 'a', to: { left: 'a', operator: '+', right: 4 } }],
        },
        { do: 'print', name: 'a' },
      ],
    },
  ]

  test('runs as it is written', () => {
    expect(runProgram(program)).toEqual([10, 0, 4])
    expect(writeProgram(program)).toBe(
      'set a to 2 * 3\nrepeat 3 times\n  if a > 7\n    set a to a mod 5\n  else\n    set a to a + 4\n  end\n  print a\nend',
    )
  })

  test('has non-negative remainders, and rejects endless programs and unset names', () => {
    const minus: Statement[] = [
      { do: 'set', name: 'a', to: { left: 0, operator: '-', right: 7 } },
      { do: 'set', name: 'a', to: { left: 'a', operator: 'mod', right: 5 } },
      { do: 'print', name: 'a' },
    ]
    expect(runProgram(minus)).toEqual([3])
    expect(() => runProgram([{ do: 'print', name: 'b' }])).toThrow('not set')
    expect(() => runProgram([{ do: 'repeat', times: 1e9, body: minus }])).toThrow('does not end')
  })
})

describe('traps', () => {
  test('number more than thirty, are unique, and have the misconception among their wrong answers', () => {
    expect(traps.length).toBeGreaterThan(30)
    expect(new Set(traps.map(({ ask }) => ask)).size).toBe(traps.length)
    for (const { expected, wrong, ask } of traps) {
      expect(isRightAnswer(expected, writeExpected(expected)), ask).toBe(true)
      for (const one of wrong) expect(isRightAnswer(expected, one), `${ask} ${one}`).toBe(false)
    }
  })

  test('have right answers wherever they can be computed', () => {
    const valueOf = (start: string): unknown => traps.find(({ ask }) => ask.startsWith(start))?.expected.value
    expect(valueOf('In JavaScript, what is the string')).toBe(typeof null)
    // oxlint-disable-next-line require-array-sort-compare -- that it has none is the question
    expect(valueOf('In JavaScript, which number')).toBe([9, 80, 700].sort()[0])
    expect(valueOf('How often does the letter "e"')).toBe('nevertheless'.split('e').length - 1)
    expect(valueOf('How often is the digit 7')).toBe(
      Array.from({ length: 100 }, (_, index) => String(index + 1))
        .join('')
        .split('7').length - 1,
    )
    expect(valueOf('In Python 3')).toBe(Math.floor(-9 / 4))
    expect(valueOf('In C,')).toBe(Math.trunc(-9 / 4))
    expect(valueOf('A rope')).toBe(Math.round(100 / (2 * Math.PI)))
    expect(valueOf('Every tenth person')).toBe(Math.round((0.08 / (0.08 + 0.18)) * 100))
    expect(valueOf('How many bytes does a gibibyte')).toBe(2 ** 30)
    expect(valueOf('A courier')).toBe(2 / (1 / 60 + 1 / 30))
    expect(valueOf('How many different whole numbers')).toBe(
      Array.from({ length: 90 }, (_, index) => index + 10).filter((one) => one % 11 === 0).length,
    )
  })
})

describe('an answer is found', () => {
  test.each([
    ['x\nANSWER: 42', '42'],
    ['ANSWER: 41\n\nANSWER: 42', '42'],
    ['**ANSWER: 42**', '42'],
    ['ANSWER: **42**', '42'],
    ['> Answer: `a b`', 'a b'],
    ['ANSWER:\n```json\n{"a":1}\n```', '{"a":1}'],
    ['ANSWER:\n42', '42'],
    ['The answer: 42', undefined],
    ['nothing', undefined],
  ])('in %j', (reply, answer) => {
    expect(findAnswer(reply)).toBe(answer)
  })

  test.each([
    [{ kind: 'time', value: '17:05' }, '5:05 pm', true],
    [{ kind: 'time', value: '00:30' }, '12:30 am', true],
    [{ kind: 'time', value: '09:05' }, '9:05', true],
    [{ kind: 'time', value: '09:05' }, '21:05', false],
    [{ kind: 'number', value: 0.5 }, '1/2', true],
    [{ kind: 'number', value: -1234 }, '−1,234', true],
    [{ kind: 'number', value: 1234 }, '1,23,4', false],
    [{ kind: 'number', value: 5, unit: 'grams' }, '5 g', true],
    [{ kind: 'number', value: 5, unit: 'grams' }, '5 kg', false],
    [{ kind: 'numbers', value: '-3, 5' }, '3, 5', false],
    [{ kind: 'exact', value: 'ab' }, 'AB', false],
  ] as const)('and %j is held against %j', (expected, answer, right) => {
    expect(isRightAnswer(expected, answer)).toBe(right)
  })
})
