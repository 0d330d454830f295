import { readFileSync, statSync } from 'node:fs'
import { type Json, type JsonObject, isObject, objectOf, parseObject, textOf } from '../../domain/json.ts'
import { frontierId } from '../../domain/profiles.ts'
import {
  describeDoubt,
  describeExclusion,
  describeShare,
  isDoubt,
  isExclusionReason,
} from '../../domain/routing-plan-text.ts'
import { maxQuestionTokens } from '../../domain/routing-plan.ts'
import { terminalLine } from '../../runtime/safe-text.ts'
import { readVersion } from '../../runtime/version.ts'
import { readWhole } from '../command-line.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { callerOptions, findKey, findService, keyCommand, readKeyVariable, readModel } from '../service-address.ts'
import { writeTable } from '../terminal/table.ts'
import { whole } from '../value-shapes.ts'
import { ask } from './doctor/ask.ts'

const withinMs = 5_000
const maxFileBytes = 5 * 1024 * 1024
const defaultTokens = 1_000
/** About one token. */
const filler = 'word '

/** Asks a running service where a request would go (contract 7.28). */
export const explain: Command = {
  name: 'explain',
  summary: 'Show which backends a running service would choose for a request, and why. Sends no model request.',
  arguments: [],
  options: [
    ...callerOptions.map((option) =>
      option.name === 'model' ? { ...option, summary: `The profile of the sample. Default ${frontierId}.` } : option,
    ),
    {
      name: 'file',
      value: 'FILE',
      summary:
        'The body of the request, as JSON of at most 5 MiB. "-" reads standard input. Default: a sample, which --model and --tokens describe.',
    },
    { name: 'messages', summary: 'With --file: the request is in Anthropic’s Messages format.' },
    {
      name: 'routing',
      value: 'JSON',
      summary: 'The routing preferences, such as {"sort":"latency"}. They replace those in the file.',
    },
    {
      name: 'tokens',
      value: 'COUNT',
      shape: whole(1, maxQuestionTokens, defaultTokens),
      summary: `The approximate size of the sample, in tokens, at most ${maxQuestionTokens}. Default ${defaultTokens}.`,
    },
  ],
  example: 'explain --routing \'{"sort":"latency"}\'',
  async run(invocation) {
    const address = findService(invocation)
    const keyVariable = readKeyVariable(invocation)
    const key = findKey(invocation, keyVariable, address)
    if (key === undefined)
      throw new CommandError(
        exitCodes.failure,
        `${keyVariable} has no API key`,
        keyCommand(invocation, address, keyVariable),
      )
    const headers = {
      authorization: `Bearer ${key.reveal()}`,
      'user-agent': `svc-router-explain/${readVersion()}`,
      ...(invocation.line.flag('messages') ? { 'anthropic-version': '2023-06-01' } : {}),
    }
    const body = JSON.stringify(await readBody(invocation))
    const answer = await ask(`${address.baseUrl}/route`, { headers, withinMs, body })
    if (answer.kind === 'silence')
      throw new CommandError(
        exitCodes.failure,
        `${address.baseUrl} did not answer (${answer.reason})`,
        invocation.command('doctor'),
      )
    const route = parseObject(answer.body) ?? {}
    if (answer.status !== 200) throw refusedBy(answer.status, route, invocation)
    return {
      text: writeRoute(route, invocation.ports.clock.nowMs()),
      json: route,
      talk: [
        `Profile ${lineOf(route['profile'])}, sort: ${lineOf(route['sort'])}.`,
        'A score is the expected time to first content in milliseconds, adjusted for load, errors, and price: lower is better.',
      ],
    }
  },
}

async function readBody(invocation: Invocation): Promise<JsonObject> {
  const { line } = invocation
  const file = line.option('file')
  const body = file === undefined ? sample(invocation) : readObject(await readText(file, invocation), '--file FILE')
  const routing = line.option('routing')
  return routing === undefined ? body : { ...body, routing: readObject(routing, '--routing JSON') }
}

function sample(invocation: Invocation): JsonObject {
  const tokens = readWhole(invocation.line, 'tokens', 1, maxQuestionTokens) ?? defaultTokens
  const model = readModel(invocation)
  return { model, stream: true, messages: [{ role: 'user', content: filler.repeat(tokens) }] }
}

async function readText(file: string, { terminal }: Invocation): Promise<string> {
  if (file === '-') return await terminal.readStdin(maxFileBytes)
  try {
    if (statSync(file).size <= maxFileBytes) return readFileSync(file, 'utf8')
  } catch {
    throw new CommandError(exitCodes.usage, 'the file cannot be read', '--file FILE')
  }
  throw new CommandError(exitCodes.usage, 'the file is larger than 5 MiB', '--file FILE')
}

function readObject(text: string, option: string): JsonObject {
  const value = parseObject(text)
  if (value !== undefined) return value
  throw new CommandError(exitCodes.usage, 'this is not a JSON object', option)
}

function refusedBy(status: number, body: JsonObject, invocation: Invocation): CommandError {
  const { message } = objectOf(body['error'])
  const said = typeof message === 'string' ? message : 'the service did not say why'
  return new CommandError(
    exitCodes.failure,
    `the service answered ${status}: ${terminalLine(said)}`,
    invocation.command('doctor'),
  )
}

/** The service's answer as a table. Another version of it may use reasons that this one does not know. */
function writeRoute(route: JsonObject, nowMs: number): string {
  const lines: string[] = []
  const { refusal } = route
  if (isObject(refusal)) lines.push(`Rejected before any backend is called: ${lineOf(refusal['message'])}`)
  if (route['fusion'] === true) lines.push('Several models answer together. If fusion falls back to one:')
  const asked = listOf(route['backends']).map(({ backend, lane, share, score, doubts }, index) => {
    const chance = typeof share === 'number' ? [describeShare({ share })] : []
    const scored = typeof score === 'number' ? [`score ${score}`] : []
    const words = (Array.isArray(doubts) ? doubts : []).map((doubt) =>
      isDoubt(doubt) ? describeDoubt(doubt) : textOf(doubt),
    )
    return [String(index + 1), textOf(backend), [textOf(lane), ...chance, ...scored, ...words].join('; ')]
  })
  const leftOut = listOf(route['left_out']).map(({ backend, reason, until }) => {
    const untilMs = typeof until === 'number' ? until * 1000 : undefined
    return [
      '-',
      textOf(backend),
      isExclusionReason(reason) ? describeExclusion({ reason, untilMs }, nowMs) : textOf(reason),
    ]
  })
  if (asked.length + leftOut.length > 0) lines.push(writeTable([['ORDER', 'BACKEND', 'DETAILS'], ...asked, ...leftOut]))
  return lines.join('\n')
}

/** The service's text: an account may have chosen it. */
function lineOf(value: Json | undefined): string {
  return terminalLine(textOf(value))
}

function listOf(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}
