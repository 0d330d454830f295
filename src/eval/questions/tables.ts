import type { Json, JsonObject } from '../../domain/json.ts'
import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'

const plants = ['fern', 'ivy', 'moss', 'sage', 'reed', 'thyme', 'yew', 'aster', 'lupin', 'mint']
const places = ['north wall', 'yard', 'roof', 'glasshouse']

interface Row {
  readonly plant: string
  readonly place: string
  readonly pots: number
  readonly perPot: number
}

/** A table to filter, aggregate, and write as JSON of a given schema. */
export function drawTable(draw: Draw): Drawn {
  const rows = draw
    .some(plants, draw.whole(6, 8))
    .map((plant): Row => ({ plant, place: draw.one(places), pots: draw.whole(2, 19), perPot: draw.whole(2, 9) }))
  const place = draw.one(rows).place
  const least = draw.whole(4, 9)
  const isKept = (row: Row): boolean => row.place !== place && row.pots >= least
  const entry = ({ plant, pots, perPot }: Row): JsonObject => ({ name: plant.toUpperCase(), total: pots * perPot })
  const answer = (kept: readonly Row[]): JsonObject => {
    const items = kept.map(entry).sort((a, b) => order(b['total'], a['total']) || order(a['name'], b['name']))
    return { items, count: items.length, sum: kept.reduce((sum, { pots, perPot }) => sum + pots * perPot, 0) }
  }
  const value = answer(rows.filter(isKept))
  const schema: JsonObject = {
    type: 'object',
    additionalProperties: false,
    required: ['items', 'count', 'sum'],
    properties: {
      items: {
        type: 'array',
        items: {
          type: 'object',
          additionalProperties: false,
          required: ['name', 'total'],
          properties: { name: { type: 'string' }, total: { type: 'integer' } },
        },
      },
      count: { type: 'integer' },
      sum: { type: 'integer' },
    },
  }
  const body = [
    'A garden keeps this table:',
    '| plant | place | pots | seedlings per pot |',
    '| --- | --- | --- | --- |',
    ...rows.map((row) => `| ${row.plant} | ${row.place} | ${row.pots} | ${row.perPot} |`),
    `Leave out every row whose place is "${place}" and every row with fewer than ${least} pots. For each remaining row give the plant's name in capital letters and its total of seedlings (pots times seedlings per pot). Sort by total, the highest first; equal totals by name in the order of the alphabet. Give also how many rows remain ("count") and the sum of their totals ("sum").`,
    `Your answer is one line of JSON that fits this schema: ${JSON.stringify(schema)}`,
  ].join('\n')
  const mistakes = [
    answer(rows.filter((row) => row.pots >= least)),
    answer(rows.filter((row) => row.place !== place)),
    answer(rows.filter((row) => row.place !== place && row.pots > least)),
    { ...value, sum: (value['sum'] as number) + 1 },
    { ...value, count: (value['count'] as number) + 1 },
    { ...value, sum: (value['sum'] as number) + 10 },
  ]
  const right = JSON.stringify(value)
  const wrong = new Set(mistakes.map((mistake: Json) => JSON.stringify(mistake)))
  wrong.delete(right)
  return { body, form: '<one line of JSON>', expected: { kind: 'json', value, schema }, wrong: [...wrong] }
}

function order(a: Json | undefined, b: Json | undefined): number {
  return a === b ? 0 : (a as number | string) < (b as number | string) ? -1 : 1
}
