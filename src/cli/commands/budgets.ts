import { removeBudget, setBudget, budgetStates } from '../../accounts/budgets.ts'
import { amountShapes, readBudgetAmount, scopeName, windowName, writeBudgetAmount } from '../../domain/budget-text.ts'
import {
  type Budget,
  type BudgetKind,
  type BudgetSetter,
  type BudgetUnit,
  type BudgetWindow,
  budgetWindows,
  isUsuallyRolling,
} from '../../domain/budgets.ts'
import { writeReset } from '../../domain/reset-text.ts'
import type { CommandLine, Option } from '../command-line.ts'
import { accountOption, type Command, type Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable } from '../terminal/table.ts'

const ownOption: Option = {
  name: 'own',
  summary: 'Set a budget that the account can change. Default: a budget that only operators can change.',
}

export const budgetsSet: Command = {
  name: 'budgets set',
  summary:
    'Set or change a budget: a limit on what an account, one of its keys, or its requests to a profile can spend.',
  arguments: [],
  options: [
    {
      name: 'usd',
      value: 'AMOUNT',
      summary: 'The limit in US dollars, from 0.01 to 1,000,000, such as 20 or 0.50. Use either this or --tokens.',
    },
    {
      name: 'tokens',
      value: 'N',
      summary: 'The limit in tokens of input and output together, from 1,000 to 1,000,000,000,000.',
    },
    {
      name: 'window',
      value: 'WINDOW',
      summary: `The period that the limit applies to: ${budgetWindows.join(', ')}. Default month.`,
    },
    {
      name: 'rolling',
      summary: 'A sliding window: the last 5 hours, 24 hours, 7 days, or 30 days. This is the default for 5h and week.',
    },
    { name: 'calendar', summary: 'A fixed window in UTC. This is the default for day and month.' },
    { name: 'for-key', value: 'ID', summary: 'Only for requests with this key. Use either this or --for-profile.' },
    { name: 'for-profile', value: 'PROFILE', summary: 'Only for requests to this profile.' },
    ownOption,
    accountOption,
  ],
  example: 'budgets set --usd 20 --window month',
  run(invocation) {
    const asked = readBudget(invocation)
    return invocation.withStore(async ({ config, budgets, account }) => {
      const { id } = await account()
      const profiles = config.profiles.map((profile) => profile.id)
      const budget = await setBudget(budgets, id, asked, setterOf(invocation.line), profiles)
      return {
        text: budget.id,
        json: budgetJson(budget),
        talk: [
          `The ${describe(budget)} is ${writeBudgetAmount(budget.unit, budget.limit)}. Running servers apply it within a second.`,
          `Next: ${invocation.command('budgets list')}`,
        ],
      }
    })
  },
}

export const budgetsList: Command = {
  name: 'budgets list',
  summary: 'List the budgets of an account, with the amounts that are spent, held by running requests, and left.',
  arguments: [],
  options: [accountOption],
  example: 'budgets list --json',
  run: (invocation) =>
    invocation.withStore(async ({ budgets, account }) => {
      const { id } = await account()
      const states = await budgetStates(budgets.store, id, budgets.clock.nowMs())
      const rows = states.map(({ budget, spent, held, left, resetsAtMs }) => [
        budget.id,
        describe(budget),
        budget.setBy,
        ...[budget.limit, spent, held, left].map((amount) => writeBudgetAmount(budget.unit, amount)),
        // A sliding window of which nothing is used has nothing to make available again.
        budget.rolling && spent + held === 0 ? '' : writeReset(resetsAtMs),
      ])
      return {
        text:
          rows.length === 0
            ? ''
            : writeTable([['ID', 'BUDGET', 'SET BY', 'LIMIT', 'SPENT', 'HELD', 'LEFT', 'MORE AVAILABLE'], ...rows]),
        json: states.map(({ budget, spent, held, left, resetsAtMs }) => ({
          ...budgetJson(budget),
          spent,
          held,
          left,
          resets_at_ms: resetsAtMs,
        })),
        talk: rows.length === 0 ? [`No budgets yet. Next: ${invocation.command('budgets set --usd 20')}`] : [],
      }
    }),
}

export const budgetsRemove: Command = {
  name: 'budgets remove',
  summary: 'Remove a budget from an account.',
  arguments: ['ID'],
  options: [accountOption],
  example: 'budgets remove ID',
  run(invocation) {
    const budgetId = invocation.argument(0, 'the ID of the budget', 'budgets list')
    return invocation.withStore(async ({ budgets, account }) => {
      const budget = await removeBudget(budgets, (await account()).id, budgetId, 'operator')
      return {
        text: budget.id,
        json: { id: budget.id, account: budget.accountId, removed: true },
        talk: [`The ${describe(budget)} is removed. Running servers stop applying it within a second.`],
      }
    })
  },
}

/** @throws CommandError */
function readBudget(invocation: Invocation): BudgetKind & { readonly limit: number } {
  const { line } = invocation
  const example = `for example: ${invocation.command('budgets set --usd 20 --window month')}`
  const usage = (problem: string): CommandError => new CommandError(exitCodes.usage, problem, example)
  const [usd, tokens, window = 'month'] = [line.option('usd'), line.option('tokens'), line.option('window')]
  if ((usd === undefined) === (tokens === undefined)) throw usage('specify the limit with either --usd or --tokens')
  const unit: BudgetUnit = usd === undefined ? 'tokens' : 'usd'
  const limit = readBudgetAmount(unit, usd ?? tokens!)
  if (limit === undefined) throw usage(`--${unit} must be ${amountShapes[unit]}`)
  if (!isWindow(window)) throw usage(`--window must be one of ${budgetWindows.join(', ')}`)
  if (line.flag('rolling') && line.flag('calendar')) throw usage('specify either --rolling or --calendar')
  const rolling = line.flag('rolling') || (!line.flag('calendar') && isUsuallyRolling(window))
  const [key, profile] = [line.option('for-key'), line.option('for-profile')]
  if (key !== undefined && profile !== undefined) throw usage('specify either --for-key or --for-profile')
  const scope = key !== undefined ? 'key' : profile !== undefined ? 'profile' : 'account'
  return { scope, subject: key ?? profile ?? '', unit, window, rolling, limit }
}

function setterOf(line: CommandLine): BudgetSetter {
  return line.flag('own') ? 'account' : 'operator'
}

function isWindow(text: string): text is BudgetWindow {
  return (budgetWindows as readonly string[]).includes(text)
}

function describe(budget: Budget): string {
  return `${windowName(budget)} budget for ${scopeName(budget)}`
}

function budgetJson({ id, accountId, scope, subject, unit, window, rolling, limit, setBy }: Budget) {
  return {
    id,
    account: accountId,
    scope,
    ...(subject === '' ? {} : { subject }),
    unit: unit === 'usd' ? 'nanodollars' : 'tokens',
    window,
    rolling,
    limit,
    set_by: setBy,
  }
}
