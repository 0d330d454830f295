import { defaultPreset, fusionPresetNames, maxPanelSize, type PresetName } from '../../../domain/fusion-presets.ts'
import type { EvalCandidate, EvalMember } from '../../../eval/ports.ts'
import { makePrice, withPrices } from '../../../eval/prices.ts'
import type { Option } from '../../command-line.ts'
import { readWhole } from '../../command-line.ts'
import { accountOption, type Invocation } from '../../command.ts'
import { CommandError, exitCodes } from '../../failures.ts'
import { oneOf, whole } from '../../value-shapes.ts'

export const defaultItems = 120
const leastItems = 8
const mostItems = 5_000
const defaultMaxUsd = 2
const mostUsd = 100_000
const usualMembers = 3
const mostSeed = 999_999_999
const mostPrice = 100_000

export const evalOptions: readonly Option[] = [
  {
    name: 'items',
    value: 'COUNT',
    shape: whole(leastItems, mostItems, defaultItems),
    summary: `The number of questions, ${leastItems} to ${mostItems}. Default ${defaultItems}.`,
  },
  {
    name: 'seed',
    value: 'NUMBER',
    shape: whole(0, mostSeed, 4711),
    summary: 'The seed of the question set, to repeat an evaluation. Default: a new set.',
  },
  {
    name: 'max-usd',
    value: 'USD',
    summary: `The spending limit in US dollars, including what a resumed evaluation has already spent. Default ${defaultMaxUsd}.`,
  },
  {
    name: 'preset',
    value: 'NAME',
    shape: oneOf(fusionPresetNames),
    summary: `The fusion preset: ${fusionPresetNames.join(', ')}. Default ${defaultPreset}.`,
  },
  {
    name: 'members',
    value: 'LIST',
    summary: `The models to compare, by backend or model name, separated by commas, at most ${maxPanelSize}. Default: the first ${usualMembers}.`,
  },
  {
    name: 'price',
    value: 'LIST',
    summary:
      'Prices in USD per million tokens: MODEL=INPUT/OUTPUT, separated by commas. Required for models whose price is unknown.',
  },
  accountOption,
  {
    name: 'dry-run',
    summary: 'Print the number of questions and calls and their maximum cost, without sending requests.',
  },
  {
    name: 'resume',
    value: 'FILE',
    summary:
      'Resume an interrupted evaluation with its questions, preset, and members. Answered questions are not asked again.',
  },
]

/** The parsed options, before the models are known. Undefined means the value of the resumed evaluation, or the default. */
export interface EvalLine {
  readonly items: number | undefined
  readonly seed: number | undefined
  readonly preset: PresetName | undefined
  readonly members: readonly string[] | undefined
  readonly maxUsd: number
  readonly prices: ReadonlyMap<string, EvalMember['price']>
}

/** @throws CommandError */
export function readEvalLine({ line }: Invocation): EvalLine {
  const preset = line.option('preset')
  const known = fusionPresetNames.find((name) => name === preset)
  if (preset !== undefined && known === undefined)
    throw new CommandError(exitCodes.usage, 'there is no such preset', `one of: ${fusionPresetNames.join(', ')}`)
  const members = line
    .option('members')
    ?.split(',')
    .map((name) => name.trim())
  if (
    members !== undefined &&
    (members.length > maxPanelSize || members.includes('') || new Set(members).size < members.length)
  )
    throw new CommandError(
      exitCodes.usage,
      `--members takes 1 to ${maxPanelSize} different names, separated by commas`,
      '--members backend-a,backend-b',
    )
  return {
    items: readWhole(line, 'items', leastItems, mostItems),
    seed: readWhole(line, 'seed', 0, mostSeed),
    preset: known,
    members,
    maxUsd: readAmount(line.option('max-usd'), '--max-usd', mostUsd) ?? defaultMaxUsd,
    prices: readPrices(line.option('price')),
  }
}

/** The panel: the named members, or the first few. @throws CommandError if one is unknown or has no price */
export function choosePanel(
  invocation: Invocation,
  candidates: readonly EvalCandidate[],
  { prices }: EvalLine,
  named: readonly string[] | undefined,
): readonly EvalMember[] {
  const listed = invocation.command('upstream list')
  const chosen =
    named?.map((name) => {
      const found = candidates.find(({ id }) => id === name) ?? candidates.find(({ model }) => model === name)
      if (found !== undefined) return found
      throw new CommandError(
        exitCodes.usage,
        '--members contains a name that is not a model of this account',
        `use one of: ${namesOf(candidates)}`,
      )
    }) ?? candidates.slice(0, usualMembers)
  if (chosen.length === 0)
    throw new CommandError(
      exitCodes.failure,
      'no model is connected',
      invocation.command('upstream add PROVIDER --model MODEL'),
    )
  if (new Set(chosen).size < chosen.length)
    throw new CommandError(exitCodes.usage, '--members contains the same model twice', `see them: ${listed}`)
  const unknown = [...prices.keys()].find((name) => !candidates.some(({ id, model }) => id === name || model === name))
  if (unknown !== undefined)
    throw new CommandError(
      exitCodes.usage,
      `--price names ${unknown}, which is not a model of this account`,
      `use one of: ${namesOf(candidates)}`,
    )
  const { members, unpriced } = withPrices(chosen, prices)
  const [first] = unpriced
  if (first === undefined) return members
  throw new CommandError(
    exitCodes.usage,
    `the price of ${unpriced.map(({ model }) => model).join(', ')} is unknown, so --max-usd cannot be enforced`,
    `give the price per million tokens in USD: --price ${first.model}=INPUT/OUTPUT`,
  )
}

function namesOf(candidates: readonly EvalCandidate[]): string {
  return candidates.map(({ id, model }) => (id === model ? id : `${id} (${model})`)).join(', ')
}

function readPrices(text: string | undefined): Map<string, EvalMember['price']> {
  const prices = new Map<string, EvalMember['price']>()
  for (const entry of text?.split(',') ?? []) {
    const [, name, input, output] = /^(.+)=([0-9.]+)\/([0-9.]+)$/.exec(entry.trim()) ?? []
    const [forInput, forOutput] = [readAmount(input, '--price', mostPrice), readAmount(output, '--price', mostPrice)]
    if (name === undefined || forInput === undefined || forOutput === undefined)
      throw new CommandError(exitCodes.usage, '--price is malformed', '--price MODEL=1.25/10,OTHER=3/15')
    if (prices.has(name)) throw new CommandError(exitCodes.usage, `--price names ${name} twice`, 'give each price once')
    prices.set(name, makePrice(forInput, forOutput))
  }
  return prices
}

function readAmount(text: string | undefined, option: string, most: number): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : NaN
  if (value >= 0 && value <= most) return value
  throw new CommandError(exitCodes.usage, `${option} must be a number from 0 to ${most}`, `for example ${option} 2.50`)
}
