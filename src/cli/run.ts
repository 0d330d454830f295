import { ConfigError } from '../config/problems.ts'
import { nearest } from '../domain/profiles.ts'
import { counted } from '../runtime/counted.ts'
import { commonOptions, ownArguments, readCommandLine } from './command-line.ts'
import { accountOption, Invocation, program, type Command } from './command.ts'
import { start } from './commands/start.ts'
import { CommandError, exitCodes, explain, type ExitCode, type CommandFailure } from './failures.ts'
import { writeGroup, writeHelp, writeOverview } from './help.ts'
import type { CliPorts, Terminal } from './ports.ts'
import { SafeTerminal, type Piece } from './terminal/safe-terminal.ts'

const errorWord: Piece = { style: 'red', text: 'error' }

/**
 * Runs one command line and returns its exit code. Throws only for bugs; it prints every expected failure (contract
 * 33.3).
 */
export async function run(args: readonly string[], terminal: Terminal, ports: CliPorts): Promise<number> {
  const own = ownArguments(args)
  const json = own.includes('--json')
  const tell = new SafeTerminal(terminal, terminal.colors && !own.includes('--no-color'))
  let invocation: Invocation | undefined
  try {
    const commands = await loadCommands(args)
    const { command, rest, help, group } = findCommand(args, commands)
    if (command === undefined) {
      tell.out(group === undefined ? writeOverview(commands) : writeGroup(group))
      return exitCodes.ok
    }
    const options = [...command.options, ...commonOptions]
    const line = readCommandLine(rest, {
      options,
      arguments: help ? undefined : command.arguments,
      shapes: command.shapes,
      passesOn: command.passesOn !== undefined,
      help: `${program} help ${command.name}`,
    })
    if (help || line.flag('help')) {
      tell.out(writeHelp(command))
      return exitCodes.ok
    }
    invocation = new Invocation(line, tell, ports, {
      needsCredentials: command.needsCredentials === true,
      takesAccount: (text) => takesAccount(text, commands),
    })
    const result = await command.run(invocation)
    if (result.json !== undefined && json) tell.json(result.json)
    else if (result.text !== '') tell.out(result.text)
    if (!json) for (const sentence of result.talk) tell.err(sentence)
    return result.exitCode ?? exitCodes.ok
  } catch (error) {
    if (error instanceof ConfigError) return tellConfigError(error, tell, json)
    const failure = explain(error, invocation?.config, (text) => invocation?.command(text) ?? `${program} ${text}`)
    if (failure === undefined) throw error
    tellFailure(failure, tell, json)
    return failure.exitCode
  }
}

/** All commands, or `start` alone: the service runs for a long time, and the other commands take memory. */
async function loadCommands([first]: readonly string[]): Promise<readonly Command[]> {
  return first === start.name ? [start] : (await import('./commands.ts')).commands
}

/** The command or help page that a command line asks for. */
interface Found {
  readonly command: Command | undefined
  readonly rest: readonly string[]
  readonly help: boolean
  /** Help for a word that several commands start with: those commands. */
  readonly group?: readonly Command[]
}

/** Finds the command that the first one or two words name. None for an empty line, `help`, and `--help`. */
function findCommand(args: readonly string[], commands: readonly Command[]): Found {
  const [first, ...others] = args
  if (first === undefined || first === '--help' || first === '-h') return { command: undefined, rest: [], help: true }
  if (first === '--version')
    return { command: commands.find((known) => known.name === 'version'), rest: others, help: false }
  if (first === 'help') {
    const end = others.findIndex((word) => word.startsWith('-'))
    const words = end < 0 ? others : others.slice(0, end)
    if (words.length === 0) return { command: undefined, rest: [], help: true }
    return groupHelp(words, commands) ?? { ...findNamed(words, commands), rest: [], help: true }
  }
  if (others[0] === '--help' || others[0] === '-h') {
    const found = groupHelp([first], commands)
    if (found !== undefined) return found
  }
  return { ...findNamed(args, commands), help: false }
}

function groupHelp([word, ...others]: readonly string[], commands: readonly Command[]): Found | undefined {
  const group = groupOf(word, commands)
  return others.length > 0 || group.length === 0 ? undefined : { command: undefined, rest: [], help: true, group }
}

/** The two-word commands that start with this word. */
function groupOf(word: string | undefined, commands: readonly Command[]): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${word} `))
}

/** Commands that operators know from other services, and what to do instead. */
const absent: ReadonlyMap<string, readonly [what: string, fix: string]> = new Map([
  [
    'reload',
    [
      'the service cannot reload its configuration file, because it reads the file only when it starts',
      `restart the nodes one at a time; to change plans, backends, and profiles without a restart: ${program} help apply`,
    ],
  ],
])

function findExact(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command; rest: readonly string[] } | undefined {
  for (const count of [2, 1]) {
    const name = words.slice(0, count).join(' ')
    const command = commands.find((known) => known.name === name)
    if (command !== undefined) return { command, rest: words.slice(count) }
  }
  return undefined
}

function takesAccount(text: string, commands: readonly Command[]): boolean {
  return findExact(text.split(' '), commands)?.command.options.some(({ name }) => name === accountOption.name) === true
}

function findNamed(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command; rest: readonly string[] } {
  const found = findExact(words, commands)
  if (found !== undefined) return found
  const [first = ''] = words
  if (first.startsWith('-'))
    throw new CommandError(
      exitCodes.usage,
      'the command line must start with a command',
      `write options after the command. See all commands: ${program} help`,
    )
  const instead = absent.get(first)
  if (instead !== undefined) throw new CommandError(exitCodes.usage, ...instead)
  const typed = words.slice(0, 2).filter((word) => !word.startsWith('-'))
  const group = groupOf(typed[0], commands)
  const names = (group.length > 0 ? group : commands).map((known) => known.name)
  const suggested = group.length > 0 ? names : [...names, 'help']
  const near = nearest(typed.join(' '), suggested) ?? nearest(typed[0] ?? '', suggested)
  const all = group.length > 0 ? `one of: ${names.join(', ')}` : `see all commands: ${program} help`
  throw new CommandError(
    exitCodes.usage,
    group.length > 0 ? `"${typed[0]}" needs a subcommand` : 'there is no such command',
    near === undefined ? all : `did you mean "${program} ${near}"? ${all}`,
  )
}

function tellFailure(
  { what, fix, exitCode, others = [] }: CommandFailure,
  terminal: SafeTerminal,
  json: boolean,
): void {
  if (json) {
    const more = others.length === 0 ? {} : { others }
    terminal.json({ error: { message: what, fix, exit_code: exitCode, ...more } }, 'err')
    return
  }
  for (const one of [{ what, fix }, ...others]) terminal.err(errorWord, `: ${one.what}\n  = fix: ${one.fix}`)
}

function tellConfigError(error: ConfigError, terminal: SafeTerminal, json: boolean): ExitCode {
  if (json) {
    const problems = error.problems.map(({ what, fix, location, path }) => ({
      file: error.file,
      line: location?.line,
      column: location?.column,
      path,
      message: what,
      fix,
    }))
    terminal.json(
      {
        error: {
          message: error.of === 'declaration' ? 'the file is invalid' : 'the configuration is invalid',
          problems,
          exit_code: exitCodes.config,
        },
      },
      'err',
    )
  } else {
    const count = counted(error.problems.length, 'problem')
    const again = `Fix ${error.problems.length === 1 ? 'it' : 'them'}, then run: ${program} check${error.file === undefined ? '' : ` --config ${error.file}`}`
    const pieces = error.message
      .split(/^error(?=:)/gm)
      .flatMap((part, index) => (index === 0 ? [part] : [errorWord, part]))
    const where = error.of === 'declaration' ? 'the file. Nothing was changed.' : `the configuration. ${again}`
    terminal.err(...pieces, `\n\n${count} in ${where}`)
  }
  return exitCodes.config
}
