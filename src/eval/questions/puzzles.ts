import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'

const names = ['Amir', 'Berta', 'Chidi', 'Dana', 'Emil', 'Fenna', 'Goran', 'Hedda']
const seats = 5

interface Clue {
  readonly text: string
  readonly holds: (order: readonly string[]) => boolean
}

/** People on a bench: adds clues until only one order is possible, which is verified by trying all orders. */
export function drawPuzzle(draw: Draw): Drawn {
  const people = draw.some(names, seats)
  const orders = allOrders(people)
  const hidden = draw.one(orders)
  let left = orders
  const clues: Clue[] = []
  for (const clue of draw.shuffled(cluesOf(people))) {
    if (!clue.holds(hidden)) continue
    const fewer = left.filter((order) => clue.holds(order))
    if (fewer.length === left.length) continue
    clues.push(clue)
    left = fewer
    if (left.length === 1) break
  }
  if (left.length !== 1) throw new Error('the clues leave more than one order')
  const seat = draw.whole(1, seats)
  const right = hidden[seat - 1]!
  const body = [
    `${people.slice(0, -1).join(', ')} and ${people.at(-1)} sit on a bench with seats 1 to ${seats}, from left to right, one on each seat.`,
    ...clues.map(({ text }) => `- ${text}`),
    `Who sits on seat ${seat}?`,
  ].join('\n')
  return {
    body,
    form: '<one name>',
    expected: { kind: 'words', value: right },
    wrong: draw.shuffled(people.filter((name) => name !== right)),
  }
}

function cluesOf(people: readonly string[]): Clue[] {
  const clues: Clue[] = []
  for (const a of people) {
    for (let seat = 1; seat <= seats; seat++)
      clues.push({ text: `${a} does not sit on seat ${seat}.`, holds: (order) => order[seat - 1] !== a })
    clues.push({ text: `${a} sits at one end.`, holds: (order) => order[0] === a || order[seats - 1] === a })
    clues.push({ text: `${a} sits on an even seat.`, holds: (order) => order.indexOf(a) % 2 === 1 })
    for (const b of people) {
      if (a === b) continue
      const distance = (order: readonly string[]): number => order.indexOf(b) - order.indexOf(a)
      clues.push({ text: `${a} sits somewhere to the left of ${b}.`, holds: (order) => distance(order) > 0 })
      if (a > b) continue
      clues.push({
        text: `${a} and ${b} do not sit next to each other.`,
        holds: (order) => Math.abs(distance(order)) > 1,
      })
      clues.push({
        text: `Exactly one person sits between ${a} and ${b}.`,
        holds: (order) => Math.abs(distance(order)) === 2,
      })
    }
  }
  return clues
}

function allOrders(people: readonly string[]): string[][] {
  if (people.length < 2) return [[...people]]
  return people.flatMap((first) => allOrders(people.filter((other) => other !== first)).map((rest) => [first, ...rest]))
}
