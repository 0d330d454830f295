import { describe, expect, test } from 'vitest'
import { findForbidden, forbiddenAsData, maskForbidden } from '../../src/domain/forbidden-text.ts'
import { mintKey } from '../../src/domain/keys.ts'
import { systemRandom } from '../../src/domain/random.ts'

const key = mintKey(systemRandom()).reveal()
const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtYWRlIHVwIn0.c2lnbmF0dXJl'
const secrets: readonly (readonly [kind: string, text: string])[] = [
  ['one of our keys', `My key is ${key}.`],
  ['one of our keys', 'It starts with sk_svc_Ab12Cd34'],
  ['a provider key', 'sk-proj-0000111122223333aaaabbbb'],
  ['a provider key', 'sk-ant-api03-0000111122223333aaaabbbb'],
  ['a provider key', 'gsk_0000111122223333aaaabbbb'],
  ['a Google key', 'AIzaSyA0000111122223333aaaabbbbccccddd'],
  ['an AWS key', 'AKIA0000111122223333'],
  ['an access token', 'ghp_0000111122223333aaaabbbb'],
  ['an access token', 'Authorization: Bearer abcdefghijklmnop'],
  ['an access token', '"access_token": "abcdefgh"'],
  ['an access token', 'refresh_token=abcdefgh'],
  ['an access token', 'ya29.a0AfB_abcdefgh'],
  ['an access token', 'xoxb-123456789012-abcdefgh'],
  ['a signed token (JWT)', jwt],
  ['a private key', '-----BEGIN RSA PRIVATE KEY-----'],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----'],
  ['a password in an address', 'postgres://me:hunter2@db.example.com/x'],
  ['a password', 'password: hunter22'],
  ['a password', 'API_KEY=abcdefgh'],
  ['a cookie', 'Cookie: svc_session=abc'],
  ['a cookie', 'set-cookie: a=b; Path=/'],
  ['a cookie', 'PHPSESSID=abcdefghijklmnop'],
  ['a conversation', '{"role": "user", "content": "hi"}'],
  ['a conversation', '{"messages": [{}]}'],
  ['a conversation', '{"input": "Dear customer"}'],
  ['a provider’s answer', '{"choices": [{"message": {}}]}'],
  ['a provider’s answer', '{"output": [{"type": "message"}]}'],
]
const harmless = [
  'Since this morning every request fails with insufficient_quota, although the page says 12 of 500.',
  'Request req_0VQ3xS8k00aB7cD9eF1gH3jK took 31 seconds, resp_0123456789abcdefABCDEF0123456789abcdefABCD too.',
  'I use svc-router/frontier with Codex 0.169 on https://api.example.com/v1 and get 404.',
  'The header said Retry-After: 4 and X-RateLimit-Reset: 1795227747. My key works in curl, but not in opencode.',
  'My input was long and the output is cut. The password field of the sign-in page is missing on my phone.',
  'Ich kann mich nicht anmelden: der Code aus der E-Mail wird nicht angenommen. 123 456 geht auch nicht.',
]

describe('what must not be told', () => {
  test.each(secrets)('%s is found and masked: %s', (kind, text) => {
    expect(findForbidden(`It fails.\n${text}\nHelp!`)).toContain(kind)
    const masked = maskForbidden(`It fails.\n${text}\nHelp!`)
    expect(findForbidden(masked)).toEqual([])
    if (/conversation|answer/.test(kind)) expect(masked).toBe('')
    else expect(masked).toMatch(/^It fails\.\n[\s\S]*•••[\s\S]*\nHelp!$/)
  })

  test.each(harmless)('what people write is taken: %s', (text) => {
    expect(findForbidden(text)).toEqual([])
    expect(maskForbidden(text)).toBe(text)
  })

  test('a page finds the same with what it is given', () => {
    const { ids, shapes } = JSON.parse(JSON.stringify(forbiddenAsData())) as {
      ids: string
      shapes: [string, string, string][]
    }
    const findThere = (text: string): string[] => {
      const rest = text.replace(new RegExp(ids, 'g'), '')
      return [
        ...new Set(
          shapes.filter(([, source, flags]) => rest.search(new RegExp(source, flags)) >= 0).map(([kind]) => kind),
        ),
      ]
    }
    for (const text of [...secrets.map(([, each]) => each), ...harmless])
      expect(findThere(text)).toEqual(findForbidden(text))
  })

  test('the longest text is looked through in no time, whatever it is made of', () => {
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
    ])
      for (const text of [piece.repeat(4_000 / piece.length), `${piece.repeat(3_900 / piece.length)}!`]) {
        const startMs = performance.now()
        findForbidden(text)
        maskForbidden(text)
        expect(performance.now() - startMs, piece).toBeLessThan(100)
      }
  })
})
