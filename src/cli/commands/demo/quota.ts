import { isObject } from '../../../domain/json.ts'
import { frontierId } from '../../../domain/profiles.ts'
import type { Demo } from './demo.ts'
import { chargedFor, chatRequest } from './stage.ts'

const limit = 5
const oneByOne = 2
const atOnce = 8

/** The demo of contract 5.12, 4.45, and 6.1. */
export const quota: Demo = {
  name: 'quota',
  summary: `A plan with ${limit} requests per month runs out while ${atOnce} requests arrive at once.`,
  promise: 'The monthly quota is never exceeded, a rejection says what to do, and nothing is charged for it.',
  service: { requestsPerMinute: 100, requestsPerMonth: limit, providers: ['sim-alpha'] },
  headers: ['X-Quota-Limit', 'X-Quota-Used', 'X-Quota-Remaining', 'X-Quota-Period', 'X-Quota-Reset'],
  async run(stage) {
    const request = chatRequest(frontierId, 'Hello!')
    stage.title(`${oneByOne} requests, one after the other; the plan allows ${limit} per month`)
    for (let number = 1; number <= oneByOne; number++) {
      const { headers, record } = await stage.ask(request)
      const used = Number(headers.get('X-Quota-Used'))
      stage.check(`1 unit was charged; ${used} of ${limit} are used`, record?.charged === 1 && used === number)
    }

    const left = limit - oneByOne
    stage.title(`${atOnce} requests at once; ${left} units are left`)
    const answers = await stage.askAtOnce(request, atOnce)
    const admitted = answers.filter(({ status }) => status === 200)
    const rejected = answers.filter(({ status }) => status === 402)
    stage.note(`HTTP 200: ${admitted.length}   HTTP 402: ${rejected.length}. One of the 402 responses:`)
    const [example] = rejected
    if (example !== undefined) stage.show(example)
    stage.check(`exactly ${left} were admitted`, admitted.length === left && rejected.length === atOnce - left)
    stage.check(`${chargedFor(answers)} units were charged, none for a rejection`, chargedFor(answers) === left)
    const error = example?.body['error']
    const upgradeUrl = isObject(error) ? error['upgradeUrl'] : undefined
    const resetsAt = isObject(error) ? error['resets_at'] : undefined
    if (typeof upgradeUrl === 'string') stage.note(`upgradeUrl: ${upgradeUrl}`)
    if (typeof resetsAt === 'number') stage.note(`resets_at:  ${resetsAt}`)
    stage.check(
      'the 402 response contains a link to upgrade and the time of the reset',
      typeof upgradeUrl === 'string' && typeof resetsAt === 'number',
    )

    stage.title('One more request')
    const last = await stage.ask(request)
    const used = last.headers.get('X-Quota-Used')
    stage.check(`${used} of ${limit} units are used, as before`, last.status === 402 && used === String(limit))
  },
}
