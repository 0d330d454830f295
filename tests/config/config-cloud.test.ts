import { expect, test } from 'vitest'
import { describeConfig } from '../../src/config/describe.ts'
import { readAwsKey, readServiceAccount } from '../../src/domain/cloud-credentials.ts'
import { accountFile } from '../providers/google-account.ts'
import { errorOf, loadText } from './config-load.ts'

const accessKey = { AccessKeyId: 'AKIAMADEUP0MADEUP000', SecretAccessKey: 'made-up-secret-of-the-tests' }
const clouds = `
providers:
  aws: {preset: bedrock, region: eu-west-1}
  google: {preset: vertex, region: europe-west4}
backends:
  a: {provider: aws, model: openai.gpt-oss-120b, credential_env: AWS_KEY}
  b: {provider: google, model: gemini-2.5-pro, credential_env: GOOGLE_KEY}
`
const env = { AWS_KEY: JSON.stringify(accessKey, undefined, 2), GOOGLE_KEY: JSON.stringify(accountFile, undefined, 2) }

test('cloud credentials come from variables as JSON and regions from the provider, and no secret is displayed', () => {
  const config = loadText(clouds, { env })
  const [aws, google] = config.backends
  expect(aws?.provider).toMatchObject({ preset: 'bedrock', region: 'eu-west-1' })
  expect(readAwsKey(aws!.credential!.reveal())?.secretAccessKey).toBe('made-up-secret-of-the-tests')
  expect(google?.provider).toMatchObject({ preset: 'vertex', region: 'europe-west4' })
  expect(readServiceAccount(google!.credential!.reveal())?.projectId).toBe('made-up-project')
  const shown = describeConfig(config)
  expect(shown).toContain('region: eu-west-1')
  expect(shown).not.toMatch(/made-up-secret|PRIVATE/)
})

test.each([
  [
    'a variable that holds no service account',
    clouds,
    { ...env, GOOGLE_KEY: 'made-up' },
    'gcloud iam service-accounts keys create',
  ],
  ['JSON that is no AWS key', clouds, { ...env, AWS_KEY: '{"key":"made-up"}' }, 'aws configure export-credentials'],
  [
    'a Bedrock key without a region',
    'backends:\n  a: {provider: bedrock, model: m, credential_env: AWS_KEY}',
    { AWS_KEY: 'made-up' },
    'region: us-east-1',
  ],
  [
    'an AWS key without a region',
    'backends:\n  a: {provider: bedrock, model: m, credential_env: AWS_KEY}',
    env,
    'region: us-east-1',
  ],
  ['a region that is none', clouds.replace('eu-west-1', '"EU West"'), env, 'the name of a region'],
])('%s is reported with a fix before the start', (_, text, variables, fix) => {
  const error = errorOf(text, { env: variables })
  expect(error.problems).toHaveLength(1)
  expect(error.problems[0]!.fix).toContain(fix)
  expect(JSON.stringify(error.problems)).not.toMatch(/made-up|PRIVATE/)
})

test('an AWS key with a region and a Vertex credential need no provider entry', () => {
  const text =
    'backends:\n  a: {provider: bedrock, model: m, credential_env: AWS_KEY}\n  b: {provider: vertex, model: m, credential_env: GOOGLE_KEY}'
  const AWS_KEY = JSON.stringify({ ...accessKey, region: 'us-east-1' })
  expect(loadText(text, { env: { ...env, AWS_KEY } }).backends).toHaveLength(2)
})
