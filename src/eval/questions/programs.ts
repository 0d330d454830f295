import type { Draw } from './draw.ts'
import { runProgram, writeProgram, type Expression, type Statement } from './mini-program.ts'
import type { Drawn } from './question.ts'
import { otherThan } from './wrong-answers.ts'

/** What a small generated program prints, by running it. */
export function drawProgram(draw: Draw): Drawn {
  const modulus = draw.one([7, 9, 11, 13])
  const start: Statement[] = ['a', 'b'].map((name) => ({
    do: 'set',
    name,
    to: { left: draw.whole(1, 9), operator: '+', right: draw.whole(0, 9) },
  }))
  const loop: Statement = {
    do: 'repeat',
    times: draw.whole(3, 5),
    body: [
      { do: 'set', name: 'a', to: drawStep(draw, 'a') },
      {
        do: 'if',
        test: {
          left: 'a',
          operator: draw.one(['<', '>'] as const),
          right: draw.one(['b', draw.whole(4, 20)] as const),
        },
        met: [{ do: 'set', name: 'b', to: drawStep(draw, 'b') }],
        unmet: [{ do: 'set', name: 'a', to: { left: 'a', operator: 'mod', right: modulus } }],
      },
    ],
  }
  const program: Statement[] = [...start, loop, { do: 'print', name: 'a' }, { do: 'print', name: 'b' }]
  const [a, b] = runProgram(program) as [number, number]
  const right = `${a}, ${b}`
  const body = [
    'A small language has variables of whole numbers. "repeat N times" runs what is indented below it N times; "if" has the usual meaning; "mod" is the remainder, which is never negative.',
    '```',
    writeProgram(program),
    '```',
    'Which two numbers does it print, in this order?',
  ].join('\n')
  const shorter = runProgram([...start, { ...loop, times: (loop.times as number) - 1 }, ...program.slice(-2)])
  const guesses = [shorter.join(', '), `${b}, ${a}`, `${a % modulus}, ${b}`]
  return {
    body,
    form: '<first number>, <second number>',
    expected: { kind: 'numbers', value: right },
    wrong: otherThan(right, guesses, (step) => `${a + step}, ${b}`),
  }
}

function drawStep(draw: Draw, name: string): Expression {
  const other = name === 'a' ? 'b' : 'a'
  const right = draw.chance(0.5) ? other : draw.whole(2, 6)
  const operator = typeof right === 'number' ? draw.one(['+', '-', '*'] as const) : draw.one(['+', '-'] as const)
  return { left: name, operator, right }
}
