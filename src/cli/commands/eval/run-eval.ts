import type { Config } from '../../../config/config.ts'
import { defaultPreset } from '../../../domain/fusion-presets.ts'
import { estimateCost, type CostEstimate } from '../../../eval/estimate-cost.ts'
import { evaluate, type Evaluation } from '../../../eval/evaluation.ts'
import type { EvaluationHead } from '../../../eval/journal-lines.ts'
import type { EvalMember, Kept, OpenedModels } from '../../../eval/ports.ts'
import { buildQuestionSet } from '../../../eval/questions/question-set.ts'
import type { Question } from '../../../eval/questions/question.ts'
import { buildReport } from '../../../eval/report.ts'
import { simulateWorld } from '../../../eval/simulated-world.ts'
import { simulatedBanner, writeReport } from '../../../eval/write-report.ts'
import { counted } from '../../../runtime/counted.ts'
import { quoteForShell } from '../../../runtime/quote-for-shell.ts'
import type { Command, Invocation } from '../../command.ts'
import { CommandError, exitCodes } from '../../failures.ts'
import { writeTable } from '../../terminal/table.ts'
import { continueEvalFile, createEvalFile, readEvalFile, type EvalFile } from './eval-file.ts'
import { choosePanel, defaultItems, readEvalLine, type EvalLine } from './eval-options.ts'

/** The exit code that shells report for an interrupted program (128 + SIGINT, contract 34.8). */
const interruptedCode = 130
/** Progress is printed after this many questions. */
const tellEvery = 10
/** Options that the file of an evaluation does not contain. */
const askedAgain = ['price', 'account']

type Result = Awaited<ReturnType<Command['run']>>

/** Runs `svc-router eval` and reports the result. @throws CommandError if the evaluation cannot start */
export async function runEval(invocation: Invocation): Promise<Result> {
  const asked = readEvalLine(invocation)
  const accountId = await invocation.withStore(async ({ account }) => (await account()).id)
  const config = invocation.config ?? invocation.load()
  const begun = beginning(invocation, asked)
  const questions = buildQuestionSet(begun.seed, begun.items)
  const members = config.backends.filter(({ simulated }) => simulated).map(({ id }) => id)
  const voice = simulateWorld({ questions, members, seed: begun.seed })
  const models = await invocation.ports.openModels(config, accountId, voice)
  try {
    return await runWith({ invocation, config, asked, begun, questions, models })
  } finally {
    await models.close()
  }
}

/** The parameters of the evaluation, from the resumed file or from the options. */
interface Beginning extends Omit<EvaluationHead, 'members'> {
  readonly members: readonly string[] | undefined
  /** For a resumed evaluation: the members' models when it started. */
  readonly models: readonly string[] | undefined
  readonly kept: Kept
  readonly path: string | undefined
}

interface EvalRunOptions {
  readonly invocation: Invocation
  readonly config: Config
  readonly asked: EvalLine
  readonly begun: Beginning
  readonly questions: readonly Question[]
  readonly models: OpenedModels
}

async function runWith({ invocation, config, asked, begun, questions, models }: EvalRunOptions): Promise<Result> {
  const { terminal, line, ports } = invocation
  const { seed, items, preset } = begun
  const members = choosePanel(invocation, models.candidates, asked, begun.members)
  if (begun.models?.some((model, index) => model !== members[index]!.model) === true)
    throw new CommandError(
      exitCodes.usage,
      'the model of a member has changed since the evaluation started',
      `start over: ${invocation.command('eval')}`,
    )
  const estimate = estimateCost({ members, questions, preset })
  const plan = { seed, items, preset, members: members.map(({ id, model }) => ({ id, model })), maxUsd: asked.maxUsd }
  const isSimulated = members.some(({ simulated }) => simulated)
  const description = describe(plan, estimate, isSimulated)
  if (line.flag('dry-run')) {
    const again =
      begun.path === undefined
        ? repeated(invocation, `--seed ${seed}`, ['items', 'preset', 'members', 'max-usd', ...askedAgain])
        : repeated(invocation, `--resume ${quoteForShell(begun.path)}`, ['max-usd', ...askedAgain])
    return {
      text: description,
      json: { ...plan, simulated: isSimulated, reckoning: estimate },
      talk: [`No requests were sent. Next: ${again}`],
    }
  }
  if (!line.flag('json')) terminal.err(description)
  using file = begun.path === undefined ? createEvalFile(config.dataDir, plan) : continueEvalFile(begun.path)
  const ending = new AbortController()
  terminal.onStop(() => ending.abort())
  const evaluation = await evaluate({
    port: { clock: ports.clock, callModel: models.callModel, journal: file.journal },
    members,
    questions,
    preset,
    seed,
    maxUsd: asked.maxUsd,
    maxCalls: estimate.most.calls,
    kept: begun.kept,
    signal: ending.signal,
    onProgress(done, spentUsd) {
      if (line.flag('json') || (done % tellEvery !== 0 && done !== items)) return
      terminal.err(`${done} of ${items} questions, ${spentUsd.toFixed(4)} USD`)
    },
  })
  return resultOf(invocation, { evaluation, members, file, plan })
}

function beginning({ line, ports }: Invocation, asked: EvalLine): Beginning {
  const path = line.option('resume')
  if (path !== undefined) {
    const { head, kept } = readEvalFile(path)
    const members = head.members.map(({ id }) => id)
    const isOther =
      (asked.items ?? head.items) !== head.items ||
      (asked.seed ?? head.seed) !== head.seed ||
      (asked.preset ?? head.preset) !== head.preset ||
      asked.members !== undefined
    if (!isOther) return { ...head, members, models: head.members.map(({ model }) => model), kept, path }
    throw new CommandError(
      exitCodes.usage,
      'a resumed evaluation keeps its original options',
      'omit --items, --seed, --preset, and --members, or start over without --resume',
    )
  }
  const [a = 0, b = 0, c = 0] = ports.random(3)
  return {
    seed: asked.seed ?? a * 65_536 + b * 256 + c,
    items: asked.items ?? defaultItems,
    preset: asked.preset ?? defaultPreset,
    members: asked.members,
    models: undefined,
    kept: { answered: new Map(), spentUsd: 0 },
    path: undefined,
  }
}

function describe(
  { seed, items, preset, members, maxUsd }: EvaluationHead & { readonly maxUsd: number },
  { typical, most }: CostEstimate,
  isSimulated: boolean,
): string {
  const names = members.map(({ id, model }) => (id === model ? id : `${id} (${model})`)).join(', ')
  return [
    ...(isSimulated ? [simulatedBanner] : []),
    `${counted(items, 'question')} with seed ${seed}, preset ${preset}, members: ${names}.`,
    `About ${counted(typical.calls, 'call')} for ${typical.usd.toFixed(2)} USD${isSimulated ? ' (simulated)' : ''}; at most ${counted(most.calls, 'call')} and ${most.usd.toFixed(2)} USD. It stops before the cost can exceed ${maxUsd} USD.`,
  ].join('\n')
}

/** The command that repeats or resumes an evaluation, with the same values of these options. */
function repeated(invocation: Invocation, first: string, names: readonly string[]): string {
  const kept = names.flatMap((name) => {
    const value = invocation.line.option(name)
    return value === undefined ? [] : [`--${name} ${quoteForShell(value)}`]
  })
  return invocation.command(['eval', first, ...kept].join(' '))
}

interface Finished {
  readonly evaluation: Evaluation
  readonly members: readonly EvalMember[]
  readonly file: EvalFile
  readonly plan: EvaluationHead
}

function resultOf(invocation: Invocation, { evaluation, members, file, plan }: Finished): Result {
  const { stop, questions, injected, spentUsd } = evaluation
  // If a member does not answer, nothing was measured.
  const report = stop?.reason === 'unanswered' ? undefined : buildReport(evaluation, members)
  const resumeWith = (...names: readonly string[]): string =>
    repeated(invocation, `--resume ${quoteForShell(file.path)}`, [...names, ...askedAgain])
  const resume = resumeWith('max-usd')
  const complete = questions.length + injected.length
  const json = {
    ...plan,
    complete: stop === undefined,
    stopped: stop?.reason,
    file: file.path,
    spentUsd,
    report,
  }
  const partial =
    stop === undefined ? '' : `PARTIAL: ${complete} of ${plan.items} questions. The evaluation stopped early.\n\n`
  const text = report === undefined ? '' : `${partial}${writeReport(report, writeTable)}`
  const early = `${complete} of ${plan.items} questions are complete, ${spentUsd.toFixed(4)} USD spent. The figures cover only those questions.`
  switch (stop?.reason) {
    case undefined:
      return { text, json, talk: [`All data is in ${file.path}, readable only by your user.`] }
    case 'money':
      return {
        text,
        json,
        talk: [
          `Stopped: the next call could exceed --max-usd. ${early}`,
          `Resume with a higher limit: ${resumeWith()} --max-usd USD`,
        ],
        exitCode: report === undefined ? exitCodes.failure : exitCodes.ok,
      }
    case 'credentials':
      return {
        text,
        json,
        talk: [
          `Stopped: a provider rejected the credential of ${stop?.member ?? 'a member'}. ${early}`,
          `Check: ${invocation.command('upstream test')}, then resume: ${resume}`,
        ],
        exitCode: exitCodes.auth,
      }
    case 'unanswered':
      return {
        text,
        json,
        talk: [
          `Stopped: ${stop.member ?? 'a member'} does not answer (${stop.outcome ?? 'failed'}, several times in a row). No accuracy is reported, because nothing was measured. ${spentUsd.toFixed(4)} USD spent.`,
          `Find out why: ${invocation.command('upstream test')}. Exclude it with --members, or resume when it answers: ${resume}`,
        ],
        exitCode: exitCodes.failure,
      }
    case 'calls':
      return {
        text,
        json,
        talk: [
          `Stopped: ${evaluation.calls} calls were made, the announced maximum, because too many had to be retried. ${early}`,
          `Resume: ${resume}`,
        ],
        exitCode: exitCodes.failure,
      }
    case 'asked':
      return { text, json, talk: [`Interrupted. ${early}`, `Resume: ${resume}`], exitCode: interruptedCode }
  }
}
