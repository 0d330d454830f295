import { styleText } from 'node:util'
import { ConfigError } from '../config/problems.ts'
import { nearest } from '../domain/profiles.ts'
import { commonOptions, ownArguments, readCommandLine } from './command-line.ts'
import { Invocation, program, type Command } from './command.ts'
import { commands } from './commands.ts'
import { CommandError, exitCodes, explain, type ExitCode, type Failure } from './failures.ts'
import { writeHelp, writeOverview } from './help.ts'
import type { CliPorts, Terminal } from './ports.ts'

/** Runs one command line and gives its exit code. Throws only bugs: every expected failure is told here. */
export async function run(args: readonly string[], terminal: Terminal, ports: CliPorts): Promise<number> {
  const own = ownArguments(args)
  const json = own.includes('--json')
  const tell = own.includes('--no-color') ? { ...terminal, colors: false } : terminal
  let invocation: Invocation | undefined
  try {
    const { command, rest, help } = findCommand(args)
    if (command === undefined) {
      tell.out(writeOverview(commands))
      return exitCodes.ok
    }
    const options = [...command.options, ...commonOptions]
    const line = readCommandLine(rest, {
      options,
      maxPositionals: help ? Infinity : command.arguments.length,
      passesOn: command.passesOn !== undefined,
      help: `${program} help ${command.name}`,
    })
    if (help || line.flag('help')) {
      tell.out(writeHelp(command))
      return exitCodes.ok
    }
    invocation = new Invocation(line, tell, ports)
    const result = await command.run(invocation)
    if (result.json !== undefined && json) tell.out(JSON.stringify(result.json))
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

/** The command that the first one or two words name; none for an empty line, `help` and `--help`. */
function findCommand(args: readonly string[]): {
  command: Command | undefined
  rest: readonly string[]
  help: boolean
} {
  const [first, ...others] = args
  if (first === undefined || first === '--help' || first === '-h') return { command: undefined, rest: [], help: true }
  if (first === '--version')
    return { command: commands.find((known) => known.name === 'version'), rest: others, help: false }
  if (first === 'help') {
    const end = others.findIndex((word) => word.startsWith('-'))
    const words = end < 0 ? others : others.slice(0, end)
    return words.length === 0
      ? { command: undefined, rest: [], help: true }
      : { ...findNamed(words), rest: [], help: true }
  }
  return { ...findNamed(args), help: false }
}

function findNamed(words: readonly string[]): { command: Command; rest: readonly string[] } {
  for (const count of [2, 1]) {
    const name = words.slice(0, count).join(' ')
    const command = commands.find((known) => known.name === name)
    if (command !== undefined) return { command, rest: words.slice(count) }
  }
  const typed = words.slice(0, 2).filter((word) => !word.startsWith('-'))
  const group = commands.filter((known) => known.name.startsWith(`${typed[0]} `))
  const names = (group.length > 0 ? group : commands).map((known) => known.name)
  const near = nearest(typed.join(' '), names) ?? nearest(typed[0] ?? '', names)
  const all = group.length > 0 ? `one of: ${names.join(', ')}` : `see all commands: ${program} help`
  throw new CommandError(
    exitCodes.usage,
    group.length > 0 ? `"${typed[0]}" needs the name of what to do` : 'there is no such command',
    near === undefined ? all : `did you mean "${program} ${near}"? ${all}`,
  )
}

function tellFailure(failure: Failure, terminal: Terminal, json: boolean): void {
  if (json)
    terminal.err(JSON.stringify({ error: { message: failure.what, fix: failure.fix, exit_code: failure.exitCode } }))
  else terminal.err(`${paint(terminal, 'error')}: ${failure.what}\n  = fix: ${failure.fix}`)
}

function tellConfigError(error: ConfigError, terminal: Terminal, json: boolean): ExitCode {
  if (json) {
    const problems = error.problems.map(({ what, fix, place }) => ({
      file: error.file,
      line: place?.line,
      column: place?.column,
      message: what,
      fix,
    }))
    terminal.err(
      JSON.stringify({ error: { message: 'the configuration cannot be used', problems, exit_code: exitCodes.config } }),
    )
  } else {
    const count = error.problems.length === 1 ? '1 problem' : `${error.problems.length} problems`
    const again = `Mend ${error.problems.length === 1 ? 'it' : 'them'}, then: ${program} check${error.file === undefined ? '' : ` --config ${error.file}`}`
    terminal.err(
      `${error.message.replaceAll(/^error:/gm, `${paint(terminal, 'error')}:`)}\n\n${count} in the configuration. ${again}`,
    )
  }
  return exitCodes.config
}

function paint(terminal: Terminal, text: string): string {
  return terminal.colors ? styleText('red', text, { validateStream: false }) : text
}
