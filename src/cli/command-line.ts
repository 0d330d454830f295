import { parseArgs } from 'node:util'
import { nearest } from '../domain/profiles.ts'
import { CommandError, exitCodes } from './failures.ts'

/** One option of a command; `value` names what follows it, absent for a switch. */
export interface Option {
  readonly name: string
  readonly value?: string
  /** Whether it may be given several times: `line.list` has them all. */
  readonly repeats?: true
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
  readonly maxPositionals: number
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

/** Reads the arguments of one command. @throws CommandError for an unknown option, a missing value or a superfluous argument, never repeating a value */
export function readCommandLine(given: readonly string[], shape: LineShape): CommandLine {
  const { options, maxPositionals, passesOn, help } = shape
  const wrong = (what: string, fix: string): CommandError => new CommandError(exitCodes.usage, what, fix)
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
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const option = known.get(token.name)
    if (option === undefined) {
      if (secretOptions.includes(token.name))
        throw wrong(
          'secrets are not given as arguments, where other programs can read them',
          known.has('key-variable')
            ? 'name the environment variable that holds it: --key-variable NAME'
            : 'send it on standard input, or name an environment variable: --credential-env NAME',
        )
      const near = nearest(token.name, [...known.keys()])
      throw wrong(
        `unknown option ${token.rawName.slice(0, 40)}`,
        near === undefined ? help : `did you mean --${near}? ${help}`,
      )
    }
    if (
      option.value !== undefined &&
      (token.value === undefined || token.value === '' || (!token.inlineValue && token.value.startsWith('--')))
    ) {
      throw wrong(`--${option.name} needs a value`, `--${option.name} ${option.value}`)
    }
    if (option.value === undefined && token.value !== undefined)
      throw wrong(`--${option.name} takes no value`, `--${option.name}`)
  }
  if (positionals.length > maxPositionals) throw wrong('there are more arguments than this command takes', help)
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
