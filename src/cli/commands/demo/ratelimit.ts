import { frontierId } from '../../../domain/profiles.ts'
import type { Demo } from './demo.ts'
import { chargedFor, chatRequest } from './stage.ts'

const limit = 5
const atOnce = 20
/** How long before the stated time the impatient client returns. */
const earlyMs = 5_000

/** The demo of contract 5.10. */
export const ratelimit: Demo = {
  name: 'ratelimit',
  summary: `${atOnce} requests at once against a limit of ${limit} per minute, and a client that waits for the time in Retry-After.`,
  promise:
    'In any 60 seconds, the service admits exactly the limit, and a client that waits for the time in Retry-After is not rejected again.',
  service: { requestsPerMinute: limit, requestsPerMonth: 100, providers: ['sim-alpha'] },
  headers: ['Retry-After', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-Quota-Used'],
  async run(stage) {
    const request = chatRequest(frontierId, 'Hello!')
    stage.title(`${atOnce} requests at once; the plan allows ${limit} per minute`)
    const answers = await stage.askAtOnce(request, atOnce)
    const admitted = answers.filter(({ status }) => status === 200)
    const rejected = answers.filter(({ status }) => status === 429)
    stage.note(`HTTP 200: ${admitted.length}   HTTP 429: ${rejected.length}. One of the 429 responses:`)
    const [example] = rejected
    if (example !== undefined) stage.show(example)
    stage.check(`exactly ${limit} were admitted`, admitted.length === limit && rejected.length === atOnce - limit)
    stage.check(`${chargedFor(answers)} units were charged, none for a rejection`, chargedFor(answers) === limit)
    const waits = rejected.map(({ headers }) => Number(headers.get('Retry-After')))
    const wait = Math.max(...waits)
    stage.check(
      `each rejection says when to retry: in ${wait} s`,
      waits.every((seconds) => seconds >= 1 && seconds <= 60),
    )

    stage.title(`A client retries ${earlyMs / 1000} s too early`)
    stage.note(`To save you the wait, the demo moves the service's clock ${wait - earlyMs / 1000} s forward.`)
    await stage.service.skip(wait * 1000 - earlyMs)
    const early = await stage.ask(request)
    const rest = Number(early.headers.get('Retry-After'))
    stage.check(
      `it is rejected again, and Retry-After is the rest of the wait: ${rest} s`,
      early.status === 429 && rest * 1000 <= earlyMs,
    )

    stage.title('The client waits for the time in Retry-After')
    stage.note(`The demo moves the service's clock ${rest} s forward.`)
    await stage.service.skip(rest * 1000)
    const late = await stage.ask(request)
    stage.check('it is admitted', late.status === 200)
  },
}
