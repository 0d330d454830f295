import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commonOptions } from '../../src/cli/command-line.ts'
import { commands } from '../../src/cli/commands.ts'
import { plainText } from '../../src/cli/value-shapes.ts'
import { Harness } from './harness.ts'

let cli: Harness
beforeEach(() => {
  cli = new Harness()
})
afterEach(() => cli.remove())

const control = 'a\u001b[2Jb'
const tooLong = 'x'.repeat(5_000)
/** Whether any word is a valid value, within a length. */
const isText = ({ what }: { readonly what: string }): boolean => what.includes(' characters')
const required = (args: readonly string[]): string[] => args.filter((name) => !name.startsWith('['))

/** Every option and argument of every command, with values that it must refuse. */
const options = commands.flatMap((command) =>
  [...command.options, ...commonOptions].flatMap(({ name, value, shape }) =>
    value === undefined || name === 'data' ? [] : [{ command, name, shape }],
  ),
)
const positionals = commands.flatMap((command) =>
  command.arguments.map((argument, index) => ({ command, name: argument.replaceAll(/[[\]]/g, ''), index })),
)

describe('every value of every command is checked before the command runs', () => {
  test.each(options)('$command.name --$name', async ({ command, name, shape = plainText }) => {
    for (const bad of [control, tooLong, ...(isText(shape) ? [] : ['no such value!', '-1'])]) {
      const given = required(command.arguments).map((argument) => command.shapes?.[argument]?.example ?? 'some')
      const { code, out, err } = await cli.say(...command.name.split(' '), ...given, `--${name}=${bad}`)
      expect([code, out], bad.slice(0, 20)).toEqual([2, ''])
      expect(err).toContain(`--${name} must be ${shape.what}`)
      expect(err).toContain(`--${name} ${shape.example}`)
      expect(err).not.toMatch(/x{100}|no such value/)
      expect(err).not.toContain(control)
    }
    expect(shape.accepts(shape.example)).toBe(true)
    expect(cli.seen).toEqual([])
  })

  test.each(positionals)('$command.name $name', async ({ command, name, index }) => {
    const shape = command.shapes?.[name] ?? plainText
    for (const bad of [control, tooLong, ...(isText(shape) ? [] : ['no such value!'])]) {
      const given = required(command.arguments).map((argument) => command.shapes?.[argument]?.example ?? 'some')
      given[index] = bad
      const { code, out, err } = await cli.say(...command.name.split(' '), ...given)
      expect([code, out]).toEqual([2, ''])
      expect(err).toContain(`${name} must be ${shape.what}`)
      expect(err).not.toMatch(/x{100}|no such value/)
      expect(err).not.toContain(control)
    }
    expect(cli.seen).toEqual([])
  })

  test.each([
    ['accounts create NAME', ['accounts', 'create'], 100],
    ['keys create --name', ['keys', 'create', '--name'], 100],
    ['incidents open TITLE', ['incidents', 'open'], 120],
    ['incidents open TEXT', ['incidents', 'open', 'Slow'], 2_000],
    ['incidents update TEXT', ['incidents', 'update', 'inc_1', 'resolved'], 2_000],
  ])('%s names the limit of the control plane', async (_, args, most) => {
    for (const bad of ['x'.repeat(most + 1), tooLong, control, ' ']) {
      const rest = args.join(' ') === 'incidents open' ? ['It is slow.'] : []
      const { code, out, err } = await cli.say(...args, bad, ...rest)
      expect([code, out]).toEqual([2, ''])
      expect(err).toContain(`must be 1 to ${most} `)
      expect(err).not.toContain('4096')
    }
    expect(cli.seen).toEqual([])
  })

  test('the longest name of an account is accepted', async () => {
    const { code, err } = await cli.say('accounts', 'create', 'x'.repeat(100))
    expect([code, err.includes('error')]).toEqual([0, false])
  })

  test.each(commands)('$name rejects unknown options and extra arguments', async ({ name, arguments: names }) => {
    const given = names.map(() => 'some')
    const unknown = await cli.say(...name.split(' '), ...given, '--jsno')
    expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining('did you mean --json?') as string])
    expect((await cli.say(...name.split(' '), ...given, 'further')).code).toBe(2)
    expect(cli.seen).toEqual([])
  })
})

test.each([
  ['helo', 'npx svc-router help"?'],
  ['hlep', 'npx svc-router help"?'],
  ['docter', 'npx svc-router doctor"?'],
  ['chek', 'npx svc-router check"?'],
  ['requets', 'npx svc-router requests"?'],
  ['stat', 'npx svc-router start"?'],
])('%s suggests %s', async (typed, suggestion) => {
  const { code, err } = await cli.say(typed)
  expect(code).toBe(2)
  expect(err).toContain(suggestion)
})

test('an invalid port is explained with the valid range and the default', async () => {
  const { err } = await cli.say('start', '--port', 'abc')
  expect(err).toContain('--port must be a port: a whole number from 0 to 65535')
  expect(err).toContain('--port 8787')
  expect(err).toContain('listen.port in the configuration, or 8787')
})

test('all problems are reported at once, arguments first', async () => {
  const { code, err } = await cli.say('operators', 'create', 'foo', '--jsno')
  expect(code).toBe(2)
  expect(err.match(/^error: .*/gm)).toEqual([
    'error: EMAIL must be an email address',
    'error: unknown option --jsno',
    'error: --role is missing',
  ])
  const asJson = await cli.say('operators', 'create', 'foo', '--json')
  expect(JSON.parse(asJson.err)).toMatchObject({
    error: { message: 'EMAIL must be an email address', others: [{ what: '--role is missing' }] },
  })
})

describe('with a configuration whose credential variable is not set', () => {
  const config = (): string => {
    const path = join(cli.folder, 'svc-router.yaml')
    mkdirSync(cli.folder, { recursive: true })
    writeFileSync(
      path,
      'backends:\n  main: { provider: openai, model: m, credential_env: MADE_UP_KEY_OF_THE_TESTS }\nprofiles:\n  svc-router/frontier: { backends: [main] }\n',
    )
    return path
  }

  test('commands that call no backend work', async () => {
    await cli.say('accounts', 'create', 'local', '--config', config())
    for (const line of [
      ['keys', 'list'],
      ['requests'],
      ['accounts', 'list'],
      ['upstream', 'list'],
      ['tickets', 'list'],
      ['connect', 'curl'],
    ]) {
      const { code, err } = await cli.say(...line, '--config', config())
      expect([code, err], line.join(' ')).toEqual([0, expect.not.stringContaining('MADE_UP_KEY') as string])
    }
  })

  test.each([['start'], ['check'], ['eval', '--dry-run'], ['profiles', 'dry-run', 'svc-router/frontier']])(
    '%s needs it',
    async (...line) => {
      const { code, err } = await cli.say(...line, '--config', config())
      expect([code, err]).toEqual([3, expect.stringContaining('MADE_UP_KEY_OF_THE_TESTS is not set') as string])
    },
  )
})
