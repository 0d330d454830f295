import { type JsonObject, objectOf } from '../../../domain/json.ts'
import type { DemoInput } from './demo-ports.ts'
import type { Demo } from './demo.ts'
import type { Stage } from './stage.ts'

const gpt = 'gpt'
const claude = 'claude'
const unmarked = 'claude-unmarked'
const turns = 11
/** Through the service, a session reads at least this much of what it reads directly. */
const leastOfDirect = 0.95

/** What the requests of a session were charged for. */
interface Bill extends DemoInput {
  readonly usd: number
}

/** The demo of contract 44.1 and 44.6. */
export const cache: Demo = {
  name: 'cache',
  summary: `A Codex session of ${turns + 1} requests, sent directly and through the service: what it costs with prompt caches.`,
  promise:
    'Through the service, a session reads at least 95% as much from the cache as directly, even at another provider.',
  service: {
    requestsPerMinute: 1_000,
    requestsPerMonth: 10_000,
    providers: [gpt, claude, unmarked],
    caching: {
      [gpt]: { like: 'openai', model: 'gpt-5.6-sol', addsMarks: true },
      [claude]: { like: 'anthropic', model: 'claude-opus-5', addsMarks: true },
      [unmarked]: { like: 'anthropic', model: 'claude-opus-5', addsMarks: false },
    },
  },
  headers: [],
  async run(stage) {
    const session = stage.service.recordedSession(turns).map((body) => ({ ...body, stream: false }))
    stage.title(
      `The session: ${session.length} requests, based on a recorded first request; four bytes count as a token`,
    )
    stage.note('The caches are simulated from published rules. Costs use published prices and cover input only.')
    const direct = await replay(stage, gpt, session, true)
    show(stage, 'directly to GPT-5.6', direct)
    const relayed = await replay(stage, gpt, session)
    show(stage, 'through the service to GPT-5.6', relayed)
    const translated = await replay(stage, claude, session)
    show(stage, 'through the service to Claude Opus 5', translated)
    const plain = await replay(stage, unmarked, session)
    show(stage, 'the same with "cache: { marks: off }"', plain)

    stage.title('The result')
    stage.check('through the service, the session costs no more at GPT-5.6 than directly', relayed.usd <= direct.usd)
    const least = leastOfDirect * share(direct)
    stage.check('at GPT-5.6, it reads at least 95% as much from the cache as directly', share(relayed) >= least)
    stage.check('at Claude, it does so, too', share(translated) >= least)
    const times = plain.usd / translated.usd
    stage.check(`at Claude, it would cost ${times.toFixed(1)} times as much without marks`, times > 1)
  },
}

/** Sends all requests, one after the other, to a provider: through the service, or directly. */
async function replay(stage: Stage, provider: string, session: readonly JsonObject[], isDirect = false): Promise<Bill> {
  const sum = { input: 0, read: 0, written: 0, usd: 0 }
  for (const body of session) {
    const [url, model] = isDirect
      ? [stage.service.urlOf(provider), 'gpt-5.6-sol']
      : [stage.service.baseUrl, `demo/${provider}`]
    // As Codex names its session.
    const answer = await stage.post(url, { ...body, model }, { 'session-id': 'recorded-session' })
    const usage = objectOf(answer['usage'])
    const details = objectOf(usage['input_tokens_details'])
    const counted = {
      input: Number(usage['input_tokens']),
      read: Number(details['cached_tokens']),
      written: Number(details['cache_write_tokens']),
    }
    sum.input += counted.input
    sum.read += counted.read
    sum.written += counted.written
    sum.usd += stage.service.inputUsd(provider, counted)
  }
  return sum
}

function show(stage: Stage, title: string, bill: Bill): void {
  const { input, read, written, usd } = bill
  const counts = `${input} tokens of input, ${read} read from the cache, ${written} written to it`
  stage.note(`${title}: ${usd.toFixed(4)} USD (${counts}: ${(100 * share(bill)).toFixed(1)}% read)`)
}

function share({ read, input }: DemoInput): number {
  return read / input
}
