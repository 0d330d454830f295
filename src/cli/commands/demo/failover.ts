import { frontierId } from '../../../domain/profiles.ts'
import type { DemoFailure } from './demo-ports.ts'
import type { Demo } from './demo.ts'
import { chatRequest, type Stage } from './stage.ts'

const first = 'sim-alpha'
const second = 'sim-beta'
const failures: readonly DemoFailure[] = ['refuses connections', 'answers 503', 'ends its stream before any content']

/** The demo of contract 7.3 and 6.4. */
export const failover: Demo = {
  name: 'failover',
  summary: 'A provider fails in three ways, and another one answers. Then all fail.',
  promise: 'If a provider fails before content, another one answers the same request, and it costs one unit.',
  service: { requestsPerMinute: 60, requestsPerMonth: 100, providers: [first, second] },
  headers: ['X-Svc-Router-Upstream', 'X-Svc-Router-Retry-Count', 'Retry-After', 'X-Quota-Used'],
  async run(stage) {
    for (const failure of failures) await failOver(stage, failure)
    await failAll(stage)
  },
}

async function failOver(stage: Stage, failure: DemoFailure): Promise<void> {
  stage.title(`${first} ${failure}`)
  await stage.service.fail(first, failure)
  const { status, headers, record } = await stage.ask(chatRequest(frontierId, 'Hello!', { stream: true }))
  const upstream = headers.get('X-Svc-Router-Upstream')
  const failed = headers.get('X-Svc-Router-Retry-Count')
  stage.check(
    `${second} answered after ${failed} failed backend`,
    status === 200 && upstream === second && failed === '1',
  )
  stage.check(`${record?.charged} unit was charged`, record?.charged === 1)
}

async function failAll(stage: Stage): Promise<void> {
  stage.title('Both providers answer 503')
  await stage.service.fail(first, 'answers 503')
  await stage.service.fail(second, 'answers 503')
  const { status, headers, record } = await stage.ask(chatRequest(frontierId, 'Hello!', { stream: true }))
  const wait = headers.get('Retry-After')
  stage.check(`the client gets a 503 that says to retry in ${wait} s`, status === 503 && Number(wait) > 0)
  stage.check(`${record?.charged} units were charged`, record?.charged === 0)
}
