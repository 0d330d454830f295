import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { openEvalModels } from '../../../src/eval-models.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { startSimulatedProvider, type SimulatedProvider } from '../../../src/simulation/providers/simulated-provider.ts'
import { Harness } from '../harness.ts'

let cli: Harness
beforeEach(async () => {
  cli = new Harness()
  cli.isStoreReal = true
  cli.onStop = () => {}
  // The real way to the models: providers of the configuration, over sockets.
  cli.openModels = (config, accountId, voice) =>
    openEvalModels(config, {
      accountId,
      voice,
      clock: systemClock(),
      random: systemRandom(),
      onBug: (error) => {
        throw error
      },
    })
  await cli.say('accounts', 'create', 'me')
})
afterEach(() => cli.remove())

const files = (): string[] => {
  const folder = join(cli.dataDir, 'eval')
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
}

interface EvalOutput {
  readonly complete: boolean
  readonly file: string
  readonly spentUsd: number
  readonly report: {
    readonly simulated: boolean
    readonly calls: number
    readonly arms: readonly { readonly name: string; readonly right: number; readonly questions: number }[]
    readonly comparisons: readonly { readonly verdict: string; readonly interval: { readonly low: number } }[]
    readonly placebos: readonly { readonly isBeyondNoise: boolean }[]
  }
}

describe('eval with the simulated models', () => {
  test('uses real connections, says before and after that the models are simulated, and stores a file for this user only', async () => {
    const { code, out, err } = await cli.say('eval', '--items', '60', '--seed', '4711')
    expect(code).toBe(0)
    expect(out.split('\n')[0]).toContain('SIMULATED')
    expect(err).toContain('SIMULATED')
    expect(err).toMatch(/About \d+ calls for [\d.]+ USD \(simulated\); at most \d+ calls/)
    for (const arm of [
      'alone: simulated-alpha',
      'self-consistency',
      'majority',
      'self-panel',
      'fusion',
      'placebo judge',
    ])
      expect(out).toContain(arm)
    expect(out).toContain('None differs by more than noise')
    const [file] = files()
    expect(statSync(file!).mode & 0o777).toBe(0o600)
    expect(statSync(join(cli.dataDir, 'eval')).mode & 0o777).toBe(0o700)
  }, 60_000)

  test('gives the same figures for the same seed, and one object with --json', async () => {
    const told = async (): Promise<EvalOutput> =>
      JSON.parse((await cli.say('eval', '--items', '24', '--seed', '9', '--json')).out) as EvalOutput
    const [first, second] = [await told(), await told()]
    expect(first.complete).toBe(true)
    expect(first.report.simulated).toBe(true)
    const rights = ({ report }: EvalOutput): unknown => report.arms.map(({ name, right }) => [name, right])
    expect(rights(first)).toEqual(rights(second))
    expect(first.file).not.toBe(second.file)
    for (const { verdict, interval } of first.report.comparisons)
      if (verdict === 'better') expect(interval.low).toBeGreaterThan(0)
  }, 60_000)

  test('the command after a dry run has the same options', async () => {
    const options = ['--items', '24', '--preset', 'fast', '--max-usd', '1', '--account', 'me']
    const { err } = await cli.say('eval', '--dry-run', '--seed', '5', ...options)
    expect(err).toContain('eval --seed 5 --items 24 --preset fast --max-usd 1 --account me')
  })

  test('continues where the money ran out, and pays for nothing twice', async () => {
    const stopped = await cli.say('eval', '--items', '24', '--seed', '5', '--max-usd', '0.04', '--account', 'me')
    expect(stopped.err).toContain('Stopped: the next call could exceed --max-usd')
    expect(stopped.out).toMatch(/^$|^PARTIAL: \d+ of 24 questions/)
    const [file] = files()
    expect(stopped.err).toMatch(new RegExp(`eval --resume ${file} --account me.* --max-usd USD`))
    chmodSync(file!, 0o644)
    const answered = readFileSync(file!, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{"answered"')).length
    const gone = JSON.parse((await cli.say('eval', '--resume', file!, '--json')).out) as EvalOutput
    expect(gone.complete).toBe(true)
    expect(statSync(file!).mode & 0o777).toBe(0o600)
    const whole = JSON.parse((await cli.say('eval', '--items', '24', '--seed', '5', '--json')).out) as EvalOutput
    expect(gone.report.calls).toBe(whole.report.calls - answered)
    expect(gone.report.arms.map(({ right }) => right)).toEqual(whole.report.arms.map(({ right }) => right))
  }, 60_000)

  test('ends with 130 after an interruption, with the figures so far and the command that continues', async () => {
    cli.onStop = (stop) => {
      const looking = setInterval(() => {
        if (!files().some((path) => readFileSync(path, 'utf8').includes('"answered"'))) return
        clearInterval(looking)
        stop()
      }, 10)
    }
    const { code, err } = await cli.say('eval', '--items', '2000', '--seed', '6', '--max-usd', '100')
    expect(code).toBe(130)
    expect(err).toContain('Interrupted.')
    const [file] = files()
    expect(err).toContain(`--resume ${file}`)
    expect(readFileSync(file!, 'utf8')).toContain('"answered"')
  }, 60_000)

  test('sends and stores nothing in a dry run, and estimates the cost', async () => {
    const { code, out } = await cli.say('eval', '--dry-run', '--items', '40', '--preset', 'fast')
    expect(code).toBe(0)
    expect(out).toMatch(/40 questions with seed \d+, preset fast, members: simulated-alpha/)
    expect(files()).toEqual([])
    const json = JSON.parse((await cli.say('eval', '--dry-run', '--json')).out) as {
      reckoning: { most: { usd: number } }
    }
    expect(json.reckoning.most.usd).toBeGreaterThan(0)
  })

  test('accepts fewer members', async () => {
    const { out } = await cli.say('eval', '--items', '8', '--members', 'simulated-beta,simulated-alpha')
    expect(out).toContain('alone: simulated-beta')
    expect(out).not.toContain('simulated-gamma')
  })
})

describe('eval with models of a configuration', () => {
  const key = 'sk-made-up-for-this-test-0123456789'
  let provider: SimulatedProvider
  beforeEach(async () => {
    provider = await startSimulatedProvider({ name: 'p', capture: true })
    // To the service they are real ones: nothing in the configuration says that they are not.
    const backend = (id: string): string =>
      `  ${id}: { provider: mine, model: model-${id}, credential_env: MINE_KEY, account: me }`
    const text = `providers:\n  mine: { preset: custom, base_url: "${provider.baseUrl}" }\nbackends:\n${backend('a')}\n${backend('b')}\nprofiles:\n  svc-router/frontier: { backends: [a, b] }\n`
    writeFileSync(join(cli.folder, 'c.yaml'), text)
    cli.env = { MINE_KEY: key }
  })
  afterEach(() => provider.close())

  const say = (...args: readonly string[]): ReturnType<Harness['say']> =>
    cli.say('eval', '--config', join(cli.folder, 'c.yaml'), '--items', '8', ...args)

  test('requires missing prices before it spends anything', async () => {
    const { code, err } = await say()
    expect(code).toBe(2)
    expect(err).toContain('the price of model-a, model-b is unknown')
    expect(err).toContain('--price model-a=INPUT/OUTPUT')
    expect(provider.counts().requests).toBe(0)
    expect(files()).toEqual([])
  })

  test('sends the same requests as the service, and the key is in no file and no output', async () => {
    const { code, out, err } = await say('--price', 'model-a=1/4,b=2/8')
    expect(err).not.toContain('error')
    expect(code).toBe(0)
    expect(out).not.toContain('SIMULATED')
    expect(provider.captured().every(({ headers }) => headers['authorization'] === `Bearer ${key}`)).toBe(true)
    expect(provider.captured().every(({ headers }) => headers['x-svc-router-fusion-depth'] === '1')).toBe(true)
    expect(out + err + readFileSync(files()[0]!, 'utf8')).not.toContain(key)
  }, 60_000)

  test('ends with 4 if a credential is rejected', async () => {
    provider.script([{ do: 'status', status: 401, repeat: true }])
    const { code, err } = await say('--price', 'model-a=1/4,b=2/8')
    expect(code).toBe(4)
    expect(err).toMatch(/rejected the credential of [ab]/)
  })
})

describe('invalid arguments and files', () => {
  test.each([
    [['--items', '3'], 'from 8 to 5000'],
    [['--preset', 'best'], '--preset must be one of fast, balanced, quality'],
    [['--max-usd', 'two'], 'must be a number'],
    [['--price', 'x'], '--price MODEL=1.25/10'],
    [['--members', 'a,a'], 'different names'],
    [['--members', 'nobody'], 'use one of: simulated-alpha, simulated-beta, simulated-gamma'],
    [['--price', 'simulated-alpah=1/2'], '--price names simulated-alpah, which is not a model of this account'],
    [['--price', 'simulated-alpha=1/2,simulated-alpha=3/4'], 'names simulated-alpha twice'],
  ])('%j ends with 2 and says what is valid', async (args, words) => {
    const { code, err } = await cli.say('eval', ...args)
    expect(code).toBe(2)
    expect(err).toContain(words)
  })

  test('a file with an invalid line is rejected with 3, naming the line', async () => {
    await cli.say('eval', '--items', '8', '--seed', '1')
    const [file] = files()
    const lines = readFileSync(file!, 'utf8').split('\n')
    for (const garbled of ['{"answered":"k.1","eve', '{"answered":"k.1","usd":0.1}', 'null', '{"began":7,"usd":1}']) {
      writeFileSync(file!, [...lines.slice(0, 2), garbled, ...lines.slice(2)].join('\n'))
      const { code, err } = await cli.say('eval', '--resume', file!)
      expect(code, garbled).toBe(3)
      expect(err).toContain('its line 3 cannot be read')
    }
    writeFileSync(file!, lines.join('\n').replace('"items":8', '"items":"8"'))
    expect((await cli.say('eval', '--resume', file!)).err).toContain('its line 1 cannot be read')
  })

  test('an incomplete last line is ignored, even after the file was continued', async () => {
    await cli.say('eval', '--items', '8', '--seed', '1')
    const [file] = files()
    const whole = readFileSync(file!, 'utf8').split('\n')
    writeFileSync(file!, `${whole.slice(0, 9).join('\n')}\n{"answered":"k.1","eve`)
    for (let round = 0; round < 2; round++) {
      const { code, err } = await cli.say('eval', '--resume', file!)
      expect(code, err).toBe(0)
    }
    expect(readFileSync(file!, 'utf8')).not.toContain('"k.1"')
  })

  test('if the money runs out before there are figures, the command says so and ends with 1', async () => {
    const { code, out, err } = await cli.say('eval', '--items', '8', '--seed', '1', '--max-usd', '0.000001')
    expect(code).toBe(1)
    expect(out).toBe('')
    expect(err).toContain('Stopped: the next call could exceed --max-usd. 0 of 8 questions are complete')
    expect(readFileSync('docs/eval.md', 'utf8')).toMatch(/\| 1 +\| stopped at the spending limit without figures/)
  })

  test('a missing or invalid file is rejected, and so is another seed for a valid one', async () => {
    expect((await cli.say('eval', '--resume', join(cli.folder, 'none'))).err).toContain('there is no file')
    writeFileSync(join(cli.folder, 'x'), 'x')
    expect((await cli.say('eval', '--resume', join(cli.folder, 'x'))).err).toContain('not an evaluation file')
    await cli.say('eval', '--items', '8', '--seed', '1')
    const { code, err } = await cli.say('eval', '--resume', files()[0]!, '--seed', '2')
    expect(code).toBe(2)
    expect(err).toContain('keeps its original options')
  })
})

describe('eval with a model that does not answer', () => {
  test('stops after a few calls, exits with a failure, and reports no accuracy', async () => {
    let calls = 0
    const { openModels: real } = cli
    cli.openModels = async (...args) => {
      const models = await real(...args)
      return {
        ...models,
        callModel: (member, call, signal) => {
          if (member.id !== 'simulated-beta') return models.callModel(member, call, signal)
          calls += 1
          return Promise.reject(new UpstreamError('unreachable', { retryAfterMs: 1 }))
        },
      }
    }
    const { code, out, err } = await cli.say('eval', '--items', '60', '--seed', '4711')
    expect([code, out]).toEqual([1, ''])
    expect(calls).toBeLessThanOrEqual(28)
    expect(err).toContain('Stopped: simulated-beta does not answer (unreachable')
    expect(err).toContain('No accuracy is reported')
    const asJson = await cli.say('eval', '--items', '60', '--seed', '4711', '--json')
    expect(JSON.parse(asJson.out)).toMatchObject({ complete: false, stopped: 'unanswered' })
    expect(JSON.parse(asJson.out)).not.toHaveProperty('report')
  }, 60_000)
})
