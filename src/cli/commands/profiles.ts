import { suggest } from '../../config/check-shape.ts'
import { requestFormatIds, type ClientFormatId } from '../../domain/format-id.ts'
import { describeDoubt, describeExclusion, describeShare } from '../../domain/routing-plan-text.ts'
import { maxQuestionTokens, type RoutingPlan, type RoutingQuestion } from '../../domain/routing-plan.ts'
import { readWhole } from '../command-line.ts'
import { accountOption, type Command, type Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable } from '../terminal/table.ts'
import { oneOf, whole } from '../value-shapes.ts'

const formats = requestFormatIds
const defaultTokens = 1_000

export const profilesDryRun: Command = {
  name: 'profiles dry-run',
  summary: 'Show which backends a request would try, in which order, and why others are skipped. Sends nothing.',
  arguments: ['PROFILE'],
  needsCredentials: true,
  options: [
    accountOption,
    { name: 'plan', value: 'PLAN', summary: 'Instead of an account: assume this plan, and no connected providers.' },
    {
      name: 'format',
      value: 'FORMAT',
      shape: oneOf(formats),
      summary: `The request format of the client: ${formats.join(', ')}. Default ${formats[0]}.`,
    },
    { name: 'stream', summary: 'The request asks for a stream.' },
    { name: 'images', summary: 'The request contains an image.' },
    { name: 'tools', summary: 'The request has tools.' },
    {
      name: 'tokens',
      value: 'COUNT',
      shape: whole(1, maxQuestionTokens, defaultTokens),
      summary: `The approximate number of input tokens, at most ${maxQuestionTokens}. Default ${defaultTokens}.`,
    },
  ],
  example: 'profiles dry-run svc-router/frontier --tokens 200000',
  run(invocation) {
    const question = readQuestion(invocation)
    const planId = invocation.line.option('plan')
    return invocation.withStore(async ({ config, account }) => {
      const named = planId === undefined ? await account() : { id: '', planId }
      const plan = config.plans.find(({ id }) => id === named.planId)
      if (plan === undefined)
        throw new CommandError(exitCodes.failure, 'there is no such plan', invocation.command('check'))
      const routingPlan = await invocation.ports.planRouting(config, { accountId: named.id, plan }, question)
      if (routingPlan.refusal?.code === 'model_not_found')
        throw new CommandError(
          exitCodes.failure,
          'there is no profile with that name',
          suggest(
            question.profile,
            config.profiles.map(({ id }) => id),
          ),
        )
      return {
        text: writePlan(routingPlan, invocation.ports.clock.nowMs()),
        json: { question, ...routingPlan },
        talk: [
          'Based on the configuration and stored data. Circuit breakers exist only in the running service: see /operator/dry-run in the web app.',
        ],
      }
    })
  },
}

function readQuestion(invocation: Invocation): RoutingQuestion {
  const { line } = invocation
  const profile = invocation.argument(0, 'the profile', 'profiles dry-run PROFILE')
  const given = line.option('format') ?? formats[0]
  const format = formats.find((known): known is ClientFormatId => known === given)
  if (format === undefined)
    throw new CommandError(exitCodes.usage, 'there is no such format', `--format ${formats.join('|')}`)
  return {
    profile,
    format,
    stream: line.flag('stream'),
    images: line.flag('images'),
    tools: line.flag('tools'),
    tokens: readWhole(line, 'tokens', 1, maxQuestionTokens) ?? defaultTokens,
  }
}

function writePlan({ refusal, panel, asked, leftOut }: RoutingPlan, nowMs: number): string {
  const lines: string[] = []
  if (refusal !== undefined) lines.push(`Rejected before any backend is called: ${refusal.code}.`)
  if (panel !== undefined)
    lines.push(`Fusion panel: ${panel.asked.join(', ')}. Final answer by: ${panel.writers[0] ?? 'none'}.`)
  const rows = [
    ...asked.map(({ backend, lane, doubts, share }, index) => [
      String(index + 1),
      backend,
      [lane, ...(share === undefined ? [] : [describeShare({ share })]), ...doubts.map(describeDoubt)].join('; '),
    ]),
    ...leftOut.map((left) => ['-', left.backend, describeExclusion(left, nowMs)]),
  ]
  if (rows.length > 0) lines.push(writeTable([['ORDER', 'BACKEND', 'DETAILS'], ...rows]))
  else if (refusal === undefined) lines.push('No backend would be called.')
  return lines.join('\n')
}
