import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { signatureLine } from '../../../src/accounts/alerts/alert-message.ts'
import { Secret } from '../../../src/runtime/secret.ts'

test('a signature covers the time of the attempt and the body', () => {
  const key = 'made-up-secret-of-the-webhook'
  const line = (nowMs: number) => signatureLine([new Secret(key)], '{"id":"1"}', nowMs)
  const mac = createHmac('sha256', key).update('1800000000.{"id":"1"}').digest('hex')
  expect(line(1_800_000_000_900)).toBe(`x-svc-router-signature: t=1800000000,v1=${mac}`)
  expect(line(1_800_000_001_000)).not.toContain(mac)
})

test('while a secret is replaced, both sign', () => {
  const line = signatureLine([new Secret('new'), new Secret('old')], 'body', 1_800_000_000_000)
  const mac = (key: string) => createHmac('sha256', key).update('1800000000.body').digest('hex')
  expect(line).toBe(`x-svc-router-signature: t=1800000000,v1=${mac('new')},v1=${mac('old')}`)
})
