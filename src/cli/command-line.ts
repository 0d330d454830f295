import { parseArgs } from 'node:util'
import { nearest } from '../domain/profiles.ts'
import { CommandError, exitCodes } from './failures.ts'
import { plainText, type ValueShape } from './value-shapes.ts'

/** One option of a command. `value` names its value; it is absent for a switch. */
export interface Option {
  readonly name: string
  /** A letter that also selects it. */
  readonly short?: string
  readonly value?: string
  /** Whether it can be repeated. `line.list` returns all values. */
  readonly repeats?: true
  /** Whether the option is required. */
  readonly required?: true
  /** The valid values; absent for any plain text. */
  readonly shape?: ValueShape
  readonly summary: string
}

/** The parsed arguments after a command's name. */
export interface CommandLine {
  readonly positionals: readonly string[]
  /** The arguments after `--`, for commands that pass them on. */
  readonly passedOn: readonly string[]
  option(name: string): string | undefined
  /** All values of a repeatable option, in order. */
  list(name: string): readonly string[]
  flag(name: string): boolean
}

/** The options of every command. */
export const commonOptions: readonly Option[] = [
  { name: 'config', value: 'FILE', summary: 'The configuration file. Default ./svc-router.yaml, if it exists.' },
  { name: 'data', value: 'FOLDER', summary: 'The data folder. Default: data in the configuration, or ./data.' },
  { name: 'json', summary: 'Print data as JSON.' },
  { name: 'no-color', summary: 'Print without colors. Setting NO_COLOR has the same effect.' },
  { name: 'help', summary: 'Print help for this command.' },
]

/** Rejected option names: they would expose a secret to every process on the machine. */
const secretOptions = ['key', 'api-key', 'apikey', 'token', 'secret', 'credential', 'password']

/** How to parse a command's arguments. */
interface LineShape {
  readonly options: readonly Option[]
  /** The names of the arguments, optional ones in brackets; undefined if any arguments are allowed. */
  readonly arguments: readonly string[] | undefined
  /** The valid values of the arguments, by name. */
  readonly shapes?: Readonly<Record<string, ValueShape>> | undefined
  /** Whether the arguments after `--` are for another program. */
  readonly passesOn: boolean
  /** The help command for this command. */
  readonly help: string
}

/** The arguments before `--`. */
export function ownArguments(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--')
  return end < 0 ? args : args.slice(0, end)
}

/**
 * Parses the arguments of one command. Reports all problems at once, arguments first, then options in the order given.
 * Problems never repeat a value, because it may be a secret. @throws CommandError with all problems
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
              ...(option.short === undefined ? {} : { short: option.short }),
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
  // An extra argument may have been meant as the value of an invalid option, so report only the option.
  const isTooMany = shape.arguments !== undefined && positionals.length > shape.arguments.length
  if (isTooMany && found.length === 0) found.push({ what: 'too many arguments', fix: help })
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
    .map(({ name, value, shape }) => ({
      what: `--${name} is missing`,
      fix:
        shape === undefined ? `--${name} ${value}` : `for example --${name} ${shape.example}; it must be ${shape.what}`,
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
      what: 'secrets are not accepted as arguments, because other programs can read them there',
      fix: known.has('key-variable')
        ? 'name the environment variable that contains it: --key-variable NAME'
        : known.has('token-variable')
          ? 'name the environment variable that contains it: --token-variable NAME'
          : known.has('credential-env')
            ? 'pipe it to standard input, or name an environment variable: --credential-env NAME'
            : help,
    }
  const near = nearest(name, [...known.keys()])
  return {
    what: `unknown option ${rawName.slice(0, 40)}`,
    fix: near === undefined ? help : `did you mean --${near}? ${help}`,
  }
}

/** Reads a whole number from an option. @throws CommandError if it is not between `min` and `max` */
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
