import { describe, expect, test } from 'vitest'
import { readDeclaration, readJsonDeclaration } from '../../src/config/declaration.ts'
import { ConfigError } from '../../src/config/problems.ts'

function problemsOf(read: () => unknown): ConfigError['problems'] {
  try {
    read()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

const inYaml = (text: string) => problemsOf(() => readDeclaration('file.yaml', text))
const inJson = (text: string) => problemsOf(() => readJsonDeclaration('file', text))

test('settings are read in one form, and the use of backends apart from them', () => {
  const { declaration } = readDeclaration(
    'file.yaml',
    `version: 1
plans: {free: {name: Free, requests_per_minute: 1, requests_per_month: 2, premium: false, fusions_at_once: 4}}
backends: {a: {provider: ollama, model: m, managed: false, failure_domain: ollama, use: drained}}
profiles: {p: {premium: false, quota_units: 1, backends: [a]}}
`,
  )
  expect(declaration).toEqual({
    settings: {
      plans: { free: { name: 'Free', requests_per_minute: 1, requests_per_month: 2 } },
      backends: { a: { provider: 'ollama', model: 'm' } },
      profiles: { p: { backends: ['a'] } },
    },
    uses: { a: 'drained' },
    accounts: undefined,
  })
})

test('a name without settings is a problem and not an empty entry', () => {
  expect(inYaml('version: 1\naccounts:\n  acme:\n    plan: free\n    keys:\n      ci:\n')).toMatchObject([
    { path: 'accounts.acme.keys.ci', location: { line: 6 } },
  ])
})

test('a number that is wrong in two ways is one problem', () => {
  const file = 'version: 1\nplans: {a: {name: T, requests_per_minute: 9999999999999999999, requests_per_month: 1e400}}'
  expect(inYaml(file).map(({ path }) => path)).toEqual(['plans.a.requests_per_minute', 'plans.a.requests_per_month'])
})

describe('a hostile file is refused within a second and with at most 100 problems:', () => {
  const many = (entry: (index: number) => string): string => Array.from({ length: 9_000 }, (_, i) => entry(i)).join(',')
  const files: readonly [what: string, text: string][] = [
    ['open brackets', `{"version":1,"accounts":${'['.repeat(500_000)}`],
    ['list marks', `version: 1\naccounts:\n  ${'- '.repeat(250_000)}`],
    ['thousands of invalid accounts', `{"version":1,"accounts":{${many((i) => `"a${i}":{"plam":"free"}`)}}}`],
    ['thousands of unknown sections', `{"version":1,${many((i) => `"a${i}":1`)}}`],
    ['a name that appears thousands of times', `{"version":1,"plans":{${many(() => '"a":1')}}}`],
    ['an unfinished text', `{"version":1,"accounts":{"${'\\'.repeat(100_001)}`],
  ]
  test.each(files)('%s', (_, text) => {
    for (const read of [inYaml, inJson]) {
      const before = process.threadCpuUsage()
      const problems = read(text)
      const { user, system } = process.threadCpuUsage(before)
      // CPU time, and four times the target: other tests run at the same time.
      expect((user + system) / 1_000).toBeLessThan(4_000)
      expect(problems.length).toBeGreaterThan(0)
      expect(problems.length).toBeLessThanOrEqual(100)
    }
  })

  test('aliases that multiply', () => {
    const lines = Array.from(
      { length: 9 },
      (_, i) =>
        `b${i}: &b${i} [${Array(9)
          .fill(i === 0 ? '*a' : `*b${i - 1}`)
          .join(',')}]`,
    )
    expect(inYaml(`version: 1\na: &a [x]\n${lines.join('\n')}\n`)).toMatchObject([
      { what: 'the file uses too many YAML aliases' },
    ])
  })
})
