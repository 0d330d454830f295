import { commonOptions, type Option } from './command-line.ts'
import { program, type Command } from './command.ts'
import { writeTable } from './terminal/table.ts'

/** The help of the whole program. */
export function writeOverview(commands: readonly Command[]): string {
  return [
    'svc-router routes model requests to several providers behind one base URL.',
    '',
    `Usage: ${program} COMMAND [ARGUMENTS] [OPTIONS]`,
    '',
    writeCommands(commands),
    '',
    'Options for every command:',
    writeOptions(commonOptions),
    '',
    `For details on a command: ${program} help COMMAND`,
  ].join('\n')
}

/** The help for commands that start with the same word. */
export function writeGroup(commands: readonly Command[]): string {
  return [writeCommands(commands), '', `For details on a command: ${program} help COMMAND`].join('\n')
}

/** The help of one command. */
export function writeHelp(command: Command): string {
  return [
    command.summary,
    '',
    `Usage: ${program} ${usageOf(command)} [OPTIONS]${command.passesOn === undefined ? '' : ` [-- ${command.passesOn}]`}`,
    '',
    writeOptions([...command.options, ...commonOptions]),
    '',
    `Example: ${program} ${command.example}`,
  ].join('\n')
}

function writeCommands(commands: readonly Command[]): string {
  return writeTable(commands.map((command) => [`  ${usageOf(command)}`, command.summary]))
}

function usageOf(command: Command): string {
  return [command.name, ...command.arguments].join(' ')
}

function writeOptions(options: readonly Option[]): string {
  return writeTable(
    options.map((option) => [
      `  ${option.short === undefined ? '' : `-${option.short}, `}--${option.name}${option.value === undefined ? '' : ` ${option.value}`}`,
      option.required === true ? `${option.summary} Required.` : option.summary,
    ]),
  )
}
