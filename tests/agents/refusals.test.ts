import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ClaudeHome } from './claude-home.ts'
import { CodexHome } from './codex-home.ts'
import { OpencodeHome } from './opencode-home.ts'
import type { Finished } from './program.ts'
import { RefusingService } from './refusing-service.ts'

const frontier = 'svc-router/frontier'
const fusion = 'svc-router/fusion'
const prompt = 'Say hello.'

let refusing: RefusingService
// All tests of an agent share one home, because stored conversations do not affect them.
let agentHomes: { readonly codex: CodexHome; readonly claude: ClaudeHome; readonly opencode: OpencodeHome }
beforeAll(async () => {
  CodexHome.install()
  ClaudeHome.install()
  OpencodeHome.install()
  agentHomes = { codex: new CodexHome(), claude: new ClaudeHome(), opencode: new OpencodeHome() }
  refusing = await RefusingService.start()
})
beforeEach(() => refusing.restartCount())
afterAll(async () => {
  for (const home of Object.values(agentHomes)) home[Symbol.dispose]()
  await refusing[Symbol.asyncDispose]()
})

interface Agent {
  readonly name: string
  /**
   * Runs the agent as docs/clients.md says, with a key and a profile. If `retries` is false, it is configured not to
   * retry.
   */
  readonly run: (key: string, profile?: string, retries?: boolean) => Promise<Finished>
  /** The output that shows a user what went wrong. */
  readonly errorOutput: (finished: Finished) => string
  /** How many requests it sends if a retry cannot help. */
  readonly requestCount: number
}

const codex: Agent = {
  name: 'Codex',
  run(key, profile = frontier, retries = true) {
    agentHomes.codex.configure(refusing.proxy)
    const settings = ['request_max_retries', 'stream_max_retries']
    const withoutRetries = settings.flatMap((name) => ['-c', `model_providers.svc-router.${name}=0`])
    return agentHomes.codex.run(['-m', profile, ...(retries ? [] : withoutRetries), prompt], key)
  },
  errorOutput: ({ stderr }) => stderr,
  requestCount: 3,
}

const claude: Agent = {
  name: 'Claude Code',
  run(key, profile = frontier, retries = true) {
    return agentHomes.claude.run(refusing.proxy, key, prompt, {
      args: ['--model', profile],
      ...(!retries && { retries: 0 }),
    })
  },
  errorOutput: ({ stdout }) => stdout,
  requestCount: 1,
}

const opencode: Agent = {
  name: 'opencode',
  run(key, profile = frontier) {
    agentHomes.opencode.configure(refusing.proxy, { profile })
    return agentHomes.opencode.run(['--title', 'A title', prompt], key, profile)
  },
  errorOutput: ({ stderr }) => stderr,
  requestCount: 1,
}

describe.each([codex, claude, opencode])('$name', ({ run, errorOutput, requestCount }) => {
  /**
   * Returns the text that a user reads. Expects what holds for every permanent rejection: no answer, no key in the
   * output, no request to the backend, and the known number of requests.
   */
  async function refused(status: number, key: string, profile?: string): Promise<string> {
    const before = refusing.served()
    const finished = await run(key, profile)
    expect(finished.code).toBe(1)
    expect(finished.stdout + finished.stderr).not.toContain(key)
    expect(finished.stdout + finished.stderr).not.toContain('simulated answer')
    expect(refusing.proxy.statuses).toEqual(Array.from({ length: requestCount }, () => status))
    expect(refusing.served()).toBe(before)
    return errorOutput(finished)
  }

  test('shows the message for a revoked key (401) and where to create another', async () => {
    const text = await refused(401, await refusing.revokedKey())
    expect(text).toContain('This API key was revoked and will not work again. Create a new one:')
    expect(text).toContain(refusing.links.accountUrl)
  })

  test('shows the message for a mistyped key (401) and where the keys are', async () => {
    const text = await refused(401, refusing.service.key.slice(0, -1))
    expect(text).toContain('The key is incomplete or mistyped')
    expect(text).toContain(refusing.links.accountUrl)
  })

  test('shows the message for a used-up month (402) and how to upgrade', async () => {
    const text = await refused(402, await refusing.spentMonth())
    expect(text).toContain('The monthly quota cannot cover this request: 1 of 1 request used on the Tiny plan.')
    expect(text).toContain(`See the plans: ${refusing.links.upgradeUrl}`)
  })

  test('shows the message for a premium profile on another plan (403) and how to upgrade', async () => {
    const text = await refused(403, await refusing.plainKey(), fusion)
    expect(text).toContain('svc-router/fusion requires a premium plan, and this account is on the Free plan.')
    expect(text).toContain(`Upgrade: ${refusing.links.upgradeUrl}`)
  })

  test('waits as long as a 429 for a used-up minute says, then succeeds', async () => {
    const { code, stdout, stderr } = await run(await refusing.spentMinute())
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(refusing.proxy.statuses).toEqual([429, 200])
    const [first, second] = refusing.proxy.answers
    expect(first!.retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(first!.retryAfterSeconds! * 1000)
  })
})

// opencode cannot disable retries: it waits until the request succeeds.
test.each([
  ['Claude Code', claude, /1 request per minute on the Slow plan\. Please try again in \d+s\./],
  // Codex does not show our message.
  ['Codex', codex, /exceeded retry limit, last status: 429 Too Many Requests, request id: req_/],
] as const)('%s without retries reports a used-up minute (429)', async (_, { run, errorOutput }, sentence) => {
  const finished = await run(await refusing.spentMinute(), frontier, false)
  expect(finished.code).toBe(1)
  expect(errorOutput(finished)).toMatch(sentence)
  expect(refusing.proxy.statuses).toEqual([429])
})
