import { parseArgs } from 'node:util'
import { nearest } from '../domain/profiles.ts'
import { CommandError, exitCodes } from './failures.ts'
import { plainText, type ValueShape } from './value-shapes.ts'

/** One option of a command; `value` names what follows it, absent for a switch. */
export interface Option {
  readonly name: string
  readonly value?: string
  /** Whether it may be given several times: `line.list` has them all. */
  readonly repeats?: true
  /** Whether the command cannot do without it. */
  readonly required?: true
  /** What its value must be; absent for any plain text. */
  readonly shape?: ValueShape
  readonly summary: string
}

/** What was typed behind a command's name. */
export interface CommandLine {
  readonly positionals: readonly string[]
  /** What stands behind `--`, for commands that pass it on. */
  readonly passedOn: readonly string[]
  option(name: string): string | undefined
  /** Every value of an option that repeats, in their order. */
  list(name: string): readonly string[]
  flag(name: string): boolean
}

/** Options that every command has. */
export const commonOptions: readonly Option[] = [
  { name: 'config', value: 'FILE', summary: 'The configuration file. Default ./svc-router.yaml, if it is there.' },
  { name: 'data', value: 'FOLDER', summary: 'The data folder. Default ./data.' },
  { name: 'json', summary: 'Print data as JSON.' },
  { name: 'no-color', summary: 'Print without colours; so does NO_COLOR.' },
  { name: 'help', summary: 'Explain this command.' },
]

/** Options that would put a secret where every process on the machine can read it. */
const secretOptions = ['key', 'api-key', 'apikey', 'token', 'secret', 'credential', 'password']

/** What a command's arguments are read by. */
interface LineShape {
  readonly options: readonly Option[]
  /** The names of the arguments, those in brackets may be left out; undefined where any are taken. */
  readonly arguments: readonly string[] | undefined
  /** What the arguments must be, by their names. */
  readonly shapes?: Readonly<Record<string, ValueShape>> | undefined
  /** Whether what stands behind `--` is for another program. */
  readonly passesOn: boolean
  /** The command that explains this one. */
  readonly help: string
}

/** The arguments that are ours: those before `--`. */
export function ownArguments(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--')
  return end < 0 ? args : args.slice(0, end)
}

/**
 * Reads the arguments of one command. Every problem is told at once, arguments first, then options as they were typed. No
 * value is repeated: it may be a secret. @throws CommandError with all problems
 */
export function readCommandLine(given: readonly string[], shape: LineShape): CommandLine {
  const { options, passesOn, help } = shape
  const args = passesOn ? ownArguments(given) : given
  const known = new Map(options.map((option) => [option.name, option]))
  const { tokens, values, positionals } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      options.map(
        (option) =>
          [
            option.name,
            {
              type: option.value === undefined ? 'boolean' : 'string',
              multiple: option.repeats === true,
              ...(option.name === 'help' ? { short: 'h' } : {}),
            },
          ] as const,
      ),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const found = [
    ...argumentProblems(positionals, shape),
    ...tokens.flatMap((token) => (token.kind === 'option' ? optionProblems(token, known, help) : [])),
    ...(shape.arguments === undefined || values['help'] === true ? [] : missingOptions(options, values)),
  ]
  // What follows a wrong option may have been meant as its value.
  const isTooMany = shape.arguments !== undefined && positionals.length > shape.arguments.length
  if (isTooMany && found.length === 0)
    found.push({ what: 'there are more arguments than this command takes', fix: help })
  const [first, ...others] = found
  if (first !== undefined) throw new CommandError(exitCodes.usage, first.what, first.fix, others)
  return {
    positionals,
    passedOn: given.slice(args.length + 1),
    option(name) {
      const value = values[name]
      return typeof value === 'string' ? value : undefined
    },
    list(name) {
      const given = values[name]
      return Array.isArray(given) ? given.filter((value) => typeof value === 'string') : []
    },
    flag: (name) => values[name] === true,
  }
}

interface Problem {
  readonly what: string
  readonly fix: string
}

function argumentProblems(given: readonly string[], { arguments: names, shapes }: LineShape): readonly Problem[] {
  if (names === undefined) return []
  return given.slice(0, names.length).flatMap((text, index): Problem[] => {
    const name = (names[index] ?? '').replaceAll(/[[\]]/g, '')
    const shape = shapes?.[name] ?? plainText
    return shape.accepts(text) ? [] : [{ what: `${name} must be ${shape.what}`, fix: `for example ${shape.example}` }]
  })
}

function missingOptions(options: readonly Option[], values: Readonly<Record<string, unknown>>): readonly Problem[] {
  return options
    .filter(({ name, required }) => required === true && values[name] === undefined)
    .map(({ name, shape }) => ({
      what: `--${name} is missing`,
      fix: `--${name} ${shape?.example ?? 'VALUE'}; it is ${shape?.what ?? 'a text'}`,
    }))
}

interface OptionToken {
  readonly name: string
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function optionProblems(token: OptionToken, known: ReadonlyMap<string, Option>, help: string): readonly Problem[] {
  const option = known.get(token.name)
  if (option === undefined) return [unknownOption(token, known, help)]
  const { name, value, shape = plainText } = option
  if (value === undefined)
    return token.value === undefined ? [] : [{ what: `--${name} takes no value`, fix: `--${name}` }]
  const { value: text, inlineValue } = token
  if (text === undefined || text === '' || (inlineValue !== true && text.startsWith('--')))
    return [{ what: `--${name} needs a value`, fix: `--${name} ${value}` }]
  if (shape.accepts(text)) return []
  return [{ what: `--${name} must be ${shape.what}`, fix: `for example --${name} ${shape.example}. ${option.summary}` }]
}

function unknownOption({ name, rawName }: OptionToken, known: ReadonlyMap<string, Option>, help: string): Problem {
  if (secretOptions.includes(name))
    return {
      what: 'secrets are not given as arguments, where other programs can read them',
      fix: known.has('key-variable')
        ? 'name the environment variable that holds it: --key-variable NAME'
        : 'send it on standard input, or name an environment variable: --credential-env NAME',
    }
  const near = nearest(name, [...known.keys()])
  return {
    what: `unknown option ${rawName.slice(0, 40)}`,
    fix: near === undefined ? help : `did you mean --${near}? ${help}`,
  }
}

/** A whole number in an option. @throws CommandError outside of `min` to `max` */
export function readWhole(line: CommandLine, name: string, min: number, max: number): number | undefined {
  const text = line.option(name)
  if (text === undefined) return undefined
  const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN
  if (value >= min && value <= max) return value
  throw new CommandError(
    exitCodes.usage,
    `--${name} must be a whole number from ${min} to ${max}`,
    `for example --${name} ${Math.min(Math.max(min, 10), max)}`,
  )
}
