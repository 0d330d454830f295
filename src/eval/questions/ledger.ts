import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'
import { differentFrom } from './wrong-answers.ts'

const accounts = ['Rent', 'Travel', 'Tools', 'Post', 'Training', 'Kitchen']
const people = ['Ines', 'Bram', 'Yuki', 'Odile', 'Tariq', 'Nora']

/** One account of a book-keeping among entries of others, of drafts and of notes that change nothing. */
export function drawLedger(draw: Draw): Drawn {
  const [asked, ...others] = draw.some(accounts, 4) as [string, ...string[]]
  const opening = draw.whole(200, 900) * 5
  let balance = opening
  let naive = opening
  let unsigned = opening
  const lines: string[] = []
  for (let entry = 1; entry <= draw.whole(7, 10); entry++) {
    const amount = draw.whole(11, 480)
    const isIn = draw.chance(0.45)
    const kind = entry <= 3 ? 'own' : draw.one(['own', 'own', 'other', 'draft', 'moved'] as const)
    const account = kind === 'other' ? draw.one(others) : asked
    const [verb, sign] = isIn ? (['received', 1] as const) : (['paid', -1] as const)
    const who = draw.one(people)
    if (kind === 'moved') {
      const to = draw.one(others)
      lines.push(`${who} moved ${amount} from ${isIn ? to : asked} to ${isIn ? asked : to}.`)
    } else if (kind === 'draft') {
      lines.push(`${who} noted a draft for ${asked}: ${amount} ${verb}. The draft was torn up the same day.`)
    } else {
      lines.push(`${account}: ${amount} ${verb}, booked by ${who}.`)
    }
    if (kind === 'own' || kind === 'moved') balance += sign * amount
    if (kind === 'own') unsigned += amount
    naive += kind === 'moved' ? 0 : sign * amount
  }
  const body = [
    `A small office keeps accounts in whole crowns. ${asked} opens the week at ${opening}. Then this happens, in this order:`,
    ...draw.shuffled(lines).map((line, index) => `${index + 1}. ${line}`),
    `What is the balance of ${asked} at the end, in crowns?`,
  ].join('\n')
  return {
    body,
    form: '<a whole number>',
    expected: { kind: 'number', value: balance, unit: 'crowns' },
    wrong: differentFrom(balance, [naive, unsigned, balance - opening, balance + 10, balance - 100, opening]),
  }
}
