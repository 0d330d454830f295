import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ClaudeHome } from './claude-home.ts'
import { CodexHome } from './codex-home.ts'
import { OpencodeHome } from './opencode-home.ts'
import type { Finished } from './programme.ts'
import { RefusingService } from './refusing-service.ts'

const frontier = 'svc-router/frontier'
const fusion = 'svc-router/fusion'
const prompt = 'Say hello.'

let refusing: RefusingService
// One for all that an agent is asked: what it keeps of earlier questions makes no difference here.
let homes: { readonly codex: CodexHome; readonly claude: ClaudeHome; readonly opencode: OpencodeHome }
beforeAll(async () => {
  CodexHome.install()
  ClaudeHome.install()
  OpencodeHome.install()
  homes = { codex: new CodexHome(), claude: new ClaudeHome(), opencode: new OpencodeHome() }
  refusing = await RefusingService.start()
})
beforeEach(() => refusing.countAnew())
afterAll(async () => {
  for (const home of Object.values(homes)) home[Symbol.dispose]()
  await refusing[Symbol.asyncDispose]()
})

interface Agent {
  readonly name: string
  /**
   * Runs it after docs/clients.md with a key and a profile; `patient` as the page has it, else so that it never asks
   * twice.
   */
  readonly ask: (key: string, profile?: string, patient?: boolean) => Promise<Finished>
  /** Where a person reads what went wrong. */
  readonly reads: (finished: Finished) => string
  /** How often it asks where asking again is of no use. */
  readonly asks: number
}

const codex: Agent = {
  name: 'Codex',
  ask(key, profile = frontier, patient = true) {
    homes.codex.configure(refusing.proxy)
    const retries = ['request_max_retries', 'stream_max_retries']
    const hasty = retries.flatMap((name) => ['-c', `model_providers.svc-router.${name}=0`])
    return homes.codex.run(['-m', profile, ...(patient ? [] : hasty), prompt], key)
  },
  reads: ({ stderr }) => stderr,
  asks: 3,
}

const claude: Agent = {
  name: 'Claude Code',
  ask(key, profile = frontier, patient = true) {
    return homes.claude.run(refusing.proxy, key, prompt, {
      args: ['--model', profile],
      ...(!patient && { retries: 0 }),
    })
  },
  reads: ({ stdout }) => stdout,
  asks: 1,
}

const opencode: Agent = {
  name: 'opencode',
  ask(key, profile = frontier) {
    homes.opencode.configure(refusing.proxy, { profile })
    return homes.opencode.run(['--title', 'A title', prompt], key, profile)
  },
  reads: ({ stderr }) => stderr,
  asks: 1,
}

describe.each([codex, claude, opencode])('$name', ({ ask, reads, asks }) => {
  /**
   * What a person reads, after what is true of every refusal that stands: no answer, no key, no backend, and as many
   * requests as are known.
   */
  async function refused(status: number, key: string, profile?: string): Promise<string> {
    const before = refusing.served()
    const finished = await ask(key, profile)
    expect(finished.code).toBe(1)
    expect(finished.stdout + finished.stderr).not.toContain(key)
    expect(finished.stdout + finished.stderr).not.toContain('simulated answer')
    expect(refusing.proxy.statuses).toEqual(Array.from({ length: asks }, () => status))
    expect(refusing.served()).toBe(before)
    return reads(finished)
  }

  test('401, a revoked key: our sentence and where to make another', async () => {
    const text = await refused(401, await refusing.revokedKey())
    expect(text).toContain('This API key was revoked and will not work again. Create a new one:')
    expect(text).toContain(refusing.links.accountUrl)
  })

  test('401, a mistyped key: our sentence and where the keys are', async () => {
    const text = await refused(401, refusing.service.key.slice(0, -1))
    expect(text).toContain('The key is incomplete or mistyped')
    expect(text).toContain(refusing.links.accountUrl)
  })

  test('402, a spent month: our sentence and the way to upgrade', async () => {
    const text = await refused(402, await refusing.spentMonth())
    expect(text).toContain('The monthly quota is used up: 1 of 1 request on the Tiny plan.')
    expect(text).toContain(`Upgrade: ${refusing.links.upgradeUrl}`)
  })

  test('403, a premium profile on a plan without it: our sentence and the way to upgrade', async () => {
    const text = await refused(403, await refusing.plainKey(), fusion)
    expect(text).toContain('svc-router/fusion requires a premium plan, and this account is on the Free plan.')
    expect(text).toContain(`Upgrade: ${refusing.links.upgradeUrl}`)
  })

  test('429, a spent minute: it waits as long as we say, and is answered', async () => {
    const { code, stdout, stderr } = await ask(await refusing.spentMinute())
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(refusing.proxy.statuses).toEqual([429, 200])
    const [first, second] = refusing.proxy.answers
    expect(first!.retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(first!.retryAfterSeconds! * 1000)
  })
})

// opencode has no setting for it: it waits until it is answered.
test.each([
  ['Claude Code', claude, /1 request per minute on the Slow plan\. Please try again in \d+s\./],
  // It keeps our sentence to itself.
  ['Codex', codex, /exceeded retry limit, last status: 429 Too Many Requests, request id: req_/],
] as const)('%s, 429, a spent minute, where it may not wait', async (_, { ask, reads }, sentence) => {
  const finished = await ask(await refusing.spentMinute(), frontier, false)
  expect(finished.code).toBe(1)
  expect(reads(finished)).toMatch(sentence)
  expect(refusing.proxy.statuses).toEqual([429])
})
