import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findForbidden, forbiddenAsData, maskForbidden } from '../../src/domain/forbidden-text.ts'
import { mintKey } from '../../src/domain/keys.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { harmless, secrets } from './forbidden-samples.ts'

describe('text that must not be sent to support', () => {
  test.each(secrets)('%s is found and masked: %s', (kind, text) => {
    expect(findForbidden(`It fails.\n${text}\nHelp!`)).toContain(kind)
    const masked = maskForbidden(`It fails.\n${text}\nHelp!`)
    expect(findForbidden(masked)).toEqual([])
    if (/conversation|answer/.test(kind)) expect(masked).toBe('')
    else expect(masked).toMatch(/^It fails\.\n[\s\S]*•••[\s\S]*\nHelp!$/)
  })

  test.each(harmless)('ordinary text is accepted: %s', (text) => {
    expect(findForbidden(text)).toEqual([])
    expect(maskForbidden(text)).toBe(text)
  })

  test('a page finds the same with the shapes it receives', () => {
    const {
      harmless: aside,
      exact,
      guessed,
    } = JSON.parse(JSON.stringify(forbiddenAsData())) as {
      harmless: [string, string][]
      exact: [string, string, string][]
      guessed: [string, string, string][]
    }
    const kindsIn = (shapes: typeof exact, text: string): string[] =>
      shapes.filter(([, source, flags]) => text.search(new RegExp(source, flags)) >= 0).map(([kind]) => kind)
    const findThere = (text: string): string[] => {
      let rest = text
      for (const [source, flags] of aside) rest = rest.replace(new RegExp(source, flags), ' ')
      return [...new Set([...kindsIn(exact, text), ...kindsIn(guessed, rest)])]
    }
    for (const text of [...secrets.map(([, each]) => each), ...harmless])
      expect(findThere(text)).toEqual(findForbidden(text))
  })

  /** Secrets as their makers make them, of random characters. */
  const alnum = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'.split('')
  const of = (characters: readonly string[], length: number) =>
    fc.string({ unit: fc.constantFrom(...characters), minLength: length, maxLength: length })
  const url64 = [...alnum, '-', '_']
  const made: Readonly<Record<string, fc.Arbitrary<string>>> = {
    'a key of ours': fc.noShrink(fc.constant(0)).map(() => mintKey(systemRandom()).reveal()),
    OpenAI: of(url64, 48).map((text) => `sk-proj-${text}`),
    Anthropic: of(url64, 93).map((text) => `sk-ant-api03-${text}AA`),
    Google: of(url64, 35).map((text) => `AIza${text}`),
    AWS: of('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.split(''), 16).chain((text) =>
      fc.constantFrom(`AKIA${text}`, `ASIA${text}`, `aws_secret_access_key=${text}${text}`),
    ),
    GitHub: of(alnum, 36).chain((text) =>
      fc.constantFrom(...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'].map((prefix) => prefix + text)),
    ),
    Slack: of(alnum, 24).chain((text) =>
      fc.constantFrom(`xoxb-1234567890-${text}`, `xoxp-1-2-${text}`, `xapp-1-A0-${text}`, `xoxe.xoxp-1-${text}`),
    ),
    JWT: fc.tuple(of(url64, 40), of(url64, 43)).map(([body, tail]) => `eyJhbGciOiJFUzI1NiJ9.eyJ${body}.${tail}`),
    'a private key': fc
      .constantFrom('', 'RSA ', 'EC ', 'OPENSSH ', 'ENCRYPTED ')
      .map((kind) => `-----BEGIN ${kind}PRIVATE KEY-----`),
    'a cookie': of(url64, 43).chain((text) => fc.constantFrom(`Cookie: svc_session=${text}`, `set-cookie: a=${text}`)),
    'a bearer header': of(url64, 30).chain((text) =>
      fc.constantFrom(`Authorization: Bearer ${text}`, `authorization: bearer  ${text}`),
    ),
    'a prompt': fc
      .tuple(fc.constantFrom('system', 'user', 'assistant'), fc.string(), fc.constantFrom(0, 2))
      .map(([role, content, indent]) => JSON.stringify({ messages: [{ role, content }] }, null, indent)),
    'a prompt inside a string': fc
      .string()
      .map((content) => JSON.stringify(JSON.stringify([{ role: 'user', content }]))),
  }
  const sentences = fc.array(fc.constantFrom(...harmless), { maxLength: 3 }).map((all) => all.join('\n'))
  const between = fc.constantFrom(' ', '\n', '"', "'", '`', '(', ': ', '\t', '>')
  test.each(Object.keys(made))('%s is found anywhere in a text, and no part of it is returned', (name) => {
    fc.assert(
      fc.property(sentences, between, made[name]!, between, sentences, (before, open, secret, close, after) => {
        const text = `${before}${open}${secret}${close}${after}`
        expect(findForbidden(text)).not.toEqual([])
        const masked = maskForbidden(text)
        expect(findForbidden(masked)).toEqual([])
        expect(masked).not.toContain(secret)
      }),
      { numRuns: 300 },
    )
  })

  test('sentences, ids, and hashes are accepted in any order', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...harmless], { minLength: 1 }), (all) => {
        expect(findForbidden(all.join('\n'))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  test('even the longest text is searched quickly, whatever it contains', () => {
    for (const piece of [
      'a',
      'sk-',
      '://',
      'eyJ',
      'A1a',
      '"input":',
      'Bearer ',
      'token=',
      'cookie:',
      'req_',
      '-',
      '0a',
      'AaaBbb1',
      'aB',
      'sha256:',
      'commit a',
      'secret_',
      'role:',
      '"d":',
      'authorization: basic ',
      '?key=',
    ])
      for (const text of [piece.repeat(4_000 / piece.length), `${piece.repeat(3_900 / piece.length)}!`]) {
        expect(
          leastProcessorMs(() => [findForbidden(text), maskForbidden(text)]),
          piece,
        ).toBeLessThan(100)
      }
  })
})

/** Of this thread alone, and the least of a few: others may be busy on this machine, and in this process. */
function leastProcessorMs(work: () => unknown): number {
  const tries = Array.from({ length: 3 }, () => {
    const start = process.threadCpuUsage()
    work()
    return process.threadCpuUsage(start).user / 1000
  })
  return Math.min(...tries)
}
