import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Service } from '../../service.ts'
import { freeHost } from '../broken-servers.ts'
import { Harness } from '../harness.ts'

let service: Service
let cli: Harness
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat', 'openai-chat'] })
})
afterAll(() => service.stop())
beforeEach(() => {
  cli = new Harness()
  cli.env['SVC_ROUTER_API_KEY'] = service.key
})
afterEach(() => cli.remove())

describe('explain', () => {
  test('shows the backends that a request would get, and why others are left out', async () => {
    const { code, out } = await cli.say(
      'explain',
      '--url',
      service.baseUrl,
      '--routing',
      '{"ignore":["alpha"],"sort":"latency"}',
    )
    expect(code).toBe(0)
    expect(out).toMatch(/1 +beta +relay; tried first with 100% probability; score \d+/)
    expect(out).toMatch(/- +alpha +the request excludes it in routing.ignore/)
  })

  test('explains the body in a file, also in the format of Messages', async () => {
    const file = join(cli.folder, 'body.json')
    writeFileSync(
      file,
      JSON.stringify({ model: 'svc-router/frontier', max_tokens: 9, system: 'Be brief.', messages: [] }),
    )
    const { out } = await cli.say('explain', '--url', service.baseUrl, '--messages', '--file', file, '--json')
    expect(JSON.parse(out)).toMatchObject({ object: 'route', format: 'anthropic-messages' })
  })

  test('says what is wrong', async () => {
    const refused = await cli.say('explain', '--url', service.baseUrl, '--routing', '{"zero":1}')
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('routing.zero is unknown')])
    const notJson = await cli.say('explain', '--url', service.baseUrl, '--routing', 'latency')
    expect([notJson.code, notJson.err]).toEqual([2, expect.stringContaining('not a JSON object')])
    const silent = await cli.say('explain', '--url', `http://${await freeHost()}/v1`)
    expect([silent.code, silent.err]).toEqual([1, expect.stringContaining('did not answer (refused)')])
    delete cli.env['SVC_ROUTER_API_KEY']
    const keyless = await cli.say('explain', '--url', service.baseUrl)
    expect(keyless.code).toBe(1)
  })
})
