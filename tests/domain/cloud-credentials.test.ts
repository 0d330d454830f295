import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { compactCredential, publicKeyId, readAwsKey, readServiceAccount } from '../../src/domain/cloud-credentials.ts'
import { accountFile } from '../providers/google-account.ts'

const id = 'AKIAMADEUP0MADEUP000'
const secret = 'made/up+secret0made/up+secret0made/up+se'
const key = { accessKeyId: id, secretAccessKey: secret }

describe('an AWS key', () => {
  test.each([
    [
      { ...key, region: 'us-east-1' },
      { ...key, region: 'us-east-1' },
    ],
    [
      { Version: 1, AccessKeyId: id, SecretAccessKey: secret, SessionToken: 'a==', Expiration: '2026-01-01T00:00:00Z' },
      { ...key, sessionToken: 'a==' },
    ],
    [
      { Credentials: { AccessKeyId: id, SecretAccessKey: secret, SessionToken: 'a==' }, AssumedRoleUser: {} },
      { ...key, sessionToken: 'a==' },
    ],
    [{ AccessKey: { UserName: 'me', AccessKeyId: id, Status: 'Active', SecretAccessKey: secret } }, key],
    [
      { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_REGION: 'eu-west-1' },
      { ...key, region: 'eu-west-1' },
    ],
  ])('is parsed from %j', (given, expected) => {
    expect(readAwsKey(JSON.stringify(given, undefined, 2))).toEqual(expected)
  })

  test.each([
    '',
    'ABSKmade-up',
    '[]',
    'null',
    '{}',
    JSON.stringify({ ...key, accessKeyId: 'short' }),
    JSON.stringify({ ...key, secretAccessKey: 'two\nlines' }),
  ])('is not parsed from %j', (text) => expect(readAwsKey(text)).toBeUndefined())
})

describe('a service account', () => {
  test('is parsed from its key file', () => {
    expect(readServiceAccount(JSON.stringify(accountFile, undefined, 2))).toEqual({
      clientEmail: accountFile.client_email,
      privateKey: accountFile.private_key,
      privateKeyId: accountFile.private_key_id,
      projectId: 'made-up-project',
    })
  })

  const { privateKey } = generateKeyPairSync('ed25519')
  test.each([
    ['a token endpoint of somebody else', { token_uri: 'https://oauth2.example.com/token' }],
    ['another universe', { universe_domain: 'example.com' }],
    ['no key', { private_key: 'made up' }],
    ['a key of another kind', { private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }],
    ['a project that leads out of the path', { project_id: '../../x' }],
    ['no address', { client_email: undefined }],
  ])('with %s is rejected', (_, change) => {
    expect(readServiceAccount(JSON.stringify({ ...accountFile, ...change }))).toBeUndefined()
  })
})

test('a cloud credential is stored as one line, parses to the same value, and reveals the id of its key', () => {
  const aws = compactCredential('aws', JSON.stringify({ ...key, Extra: 1 }, undefined, 2))!
  const google = compactCredential('google', JSON.stringify(accountFile, undefined, 2))!
  for (const text of [aws, google]) expect(text).toMatch(/^[\x20-\x7e]+$/)
  expect(readAwsKey(aws)).toEqual(key)
  expect(readServiceAccount(google)).toEqual(readServiceAccount(JSON.stringify(accountFile)))
  expect([publicKeyId(aws), publicKeyId(google), publicKeyId('sk-made-up'), publicKeyId('{}')]).toEqual([
    id,
    accountFile.private_key_id,
    undefined,
    undefined,
  ])
  expect(compactCredential('aws', 'made-up')).toBeUndefined()
})
