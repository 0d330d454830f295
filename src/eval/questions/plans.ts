import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'
import { differentFrom } from './wrong-answers.ts'

interface Tariff {
  readonly name: string
  readonly monthly: number
  readonly included: number
  /** Cents for each further unit. */
  readonly perUnit: number
}

/** Tariffs with included units, and recipes and tanks in other units. */
export function drawPlan(draw: Draw): Drawn {
  return draw.chance(0.6) ? drawTariff(draw) : drawUnits(draw)
}

function drawTariff(draw: Draw): Drawn {
  const tariffs = draw.some(['Brook', 'Creek', 'Delta', 'Fjord'], 3).map((name): Tariff => ({
    name,
    monthly: draw.whole(4, 30),
    included: draw.whole(1, 12) * 50,
    perUnit: draw.whole(2, 9) * 5,
  }))
  const used = draw.whole(90, 900)
  const months = draw.whole(2, 6)
  const costOf = ({ monthly, included, perUnit }: Tariff): number =>
    (monthly * 100 + Math.max(0, used - included) * perUnit) * months
  const costs = tariffs.map(costOf)
  const right = Math.min(...costs) / 100
  const body = [
    'Three tariffs are offered; each is paid per month:',
    ...tariffs.map(
      ({ name, monthly, included, perUnit }) =>
        `- ${name}: ${monthly} crowns, ${included} units included, then ${perUnit} hundredths of a crown for each further unit.`,
    ),
    `A workshop uses ${used} units in each month and stays with one tariff for ${months} months. What does it pay in all, in crowns, if it takes the tariff that is cheapest for it?`,
  ].join('\n')
  const ignoring = tariffs.map(({ monthly, perUnit }) => ((monthly * 100 + used * perUnit) * months) / 100)
  const guesses = [...costs.map((cost) => cost / 100), right / months, ...ignoring]
  return {
    body,
    form: '<a number, decimals after a point where needed>',
    expected: { kind: 'number', value: right, unit: 'crowns' },
    wrong: differentFrom(right, guesses),
  }
}

function drawUnits(draw: Draw): Drawn {
  const cups = draw.whole(3, 9)
  const milPerCup = draw.one([240, 250])
  const serves = draw.one([4, 6, 8])
  const guests = serves * draw.whole(2, 5)
  const bottle = draw.one([330, 500, 750])
  const need = (cups * milPerCup * guests) / serves
  const right = Math.ceil(need / bottle)
  const body = `A punch for ${serves} guests takes ${cups} cups of juice; a cup holds ${milPerCup} ml. Juice is sold in bottles of ${bottle} ml that cannot be opened in the shop. How many bottles have to be bought for ${guests} guests?`
  return {
    body,
    form: '<a whole number>',
    expected: { kind: 'number', value: right, unit: 'bottles' },
    wrong: differentFrom(right, [
      Math.floor(need / bottle),
      right + 1,
      Math.ceil((cups * milPerCup) / bottle),
      right * 2,
    ]),
  }
}
