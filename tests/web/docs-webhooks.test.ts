import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { signatureLine } from '../../src/accounts/alerts/alert-message.ts'
import { Secret } from '../../src/runtime/secret.ts'

const source = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
const body = '{"id":"1","text":"Grüße"}'

/** The program of a language in the documentation. */
function program(language: string): string {
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(source)![1]!
}

/** The value of the header. */
function header(secrets: readonly string[], nowMs = Date.now()): string {
  return signatureLine(
    secrets.map((secret) => new Secret(secret)),
    body,
    nowMs,
  ).split(': ')[1]!
}

/** A header, the secret that checks it, and whether the message is from us. */
const cases: readonly (readonly [given: string, secret: string, isOurs: boolean])[] = [
  [header(['right']), 'right', true],
  [header(['new', 'right']), 'right', true],
  [header(['right', 'old']), 'right', true],
  [header(['wrong']), 'right', false],
  [header(['right'], Date.now() - 301_000), 'right', false],
  [header(['right']).replace(/.$/, (last) => (last === '0' ? '1' : '0')), 'right', false],
]

test('the JavaScript program in docs/webhooks.md accepts only our messages', () => {
  const calls = cases.map(([given, secret]) => `isFromSvcRouter(${JSON.stringify(given)}, body, '${secret}')`)
  const code = `${program('js')}\nconst body = ${JSON.stringify(body)}\nconsole.log(JSON.stringify([${calls.join(', ')}]))`
  const out = execFileSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' })
  expect(JSON.parse(out)).toEqual(cases.map(([, , isOurs]) => isOurs))
})

test.runIf(spawnSync('python3', ['--version']).status === 0)(
  'the Python program in docs/webhooks.md accepts only our messages',
  () => {
    const calls = cases.map(([given, secret]) => `is_from_svc_router("${given}", body, "${secret}")`)
    const code = `${program('python')}\nimport json\nbody = ${JSON.stringify(body)}.encode()\nprint(json.dumps([${calls.join(', ')}]))`
    const out = execFileSync('python3', ['-c', code], { encoding: 'utf8' })
    expect(JSON.parse(out)).toEqual(cases.map(([, , isOurs]) => isOurs))
  },
)
