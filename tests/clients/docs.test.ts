import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { documentedBlocks } from './docs.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')
const timeoutMs = 20_000
const says = 'This is a simulated answer from alpha. You said: "Hello!".'

let service: Service
let folder: string
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'] })
  // Inside the project, so that its packages are found.
  mkdirSync(join(root, '.cache'), { recursive: true })
  folder = mkdtempSync(join(root, '.cache', 'docs-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await service.stop()
})

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, SVC_ROUTER_BASE_URL: service.baseUrl, SVC_ROUTER_API_KEY: service.key }
}

const scripts = [
  'OpenAI SDK for JavaScript',
  'AI SDK',
  'Conversations',
  'WebSockets',
  'Anthropic SDK for JavaScript',
].flatMap((heading) =>
  documentedBlocks(heading, 'js').map((code, index) => ({ name: `${heading}, ${index + 1}`, code })),
)

test('the page has seven programs and two commands to try', () => {
  expect(scripts).toHaveLength(7)
  expect(documentedBlocks('curl', 'sh')).toHaveLength(2)
})

/** The programs that ask twice: non-streaming and streamed. */
const twice = [scripts[0]!, scripts.at(-1)!]

test.each(scripts)('the program in docs/clients.md runs unchanged: $name', async (script) => {
  const path = join(folder, `${script.name.replace(/\W+/g, '-')}.mjs`)
  writeFileSync(path, script.code)
  const { stdout } = await run(process.execPath, [path], { env: environment(), timeout: timeoutMs })
  if (twice.includes(script)) expect(stdout).toBe(`${says}\n${says}`)
  else expect(stdout).toContain(says)
})

test('the first curl command in docs/clients.md gets a non-streaming answer', async () => {
  const { stdout } = await run('sh', ['-c', documentedBlocks('curl', 'sh')[0]!], {
    env: environment(),
    timeout: timeoutMs,
  })
  expect(JSON.parse(stdout)).toMatchObject({ choices: [{ message: { content: says } }] })
})

test('the second curl command in docs/clients.md gets a stream', async () => {
  const { stdout } = await run('sh', ['-c', documentedBlocks('curl', 'sh')[1]!], {
    env: environment(),
    timeout: timeoutMs,
  })
  expect(stdout).toContain('event: response.completed')
  expect(stdout.trimEnd().endsWith('data: [DONE]')).toBe(true)
})

test('an unchanged OpenAI program works with only OPENAI_BASE_URL and OPENAI_API_KEY set', async () => {
  const path = join(folder, 'unchanged.mjs')
  writeFileSync(
    path,
    `import OpenAI from 'openai'
const { output_text } = await new OpenAI().responses.create({ model: 'svc-router/frontier', input: 'Hello!' })
console.log(output_text)`,
  )
  const env = { ...process.env, OPENAI_BASE_URL: service.baseUrl, OPENAI_API_KEY: service.key }
  expect((await run(process.execPath, [path], { env, timeout: timeoutMs })).stdout).toContain(says)
})

test('an unchanged Anthropic program works with only ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY set', async () => {
  const path = join(folder, 'unchanged-anthropic.mjs')
  writeFileSync(
    path,
    `import Anthropic from '@anthropic-ai/sdk'
const request = { model: 'svc-router/frontier', max_tokens: 100, messages: [{ role: 'user', content: 'Hello!' }] }
console.log((await new Anthropic().messages.create(request)).content[0].text)`,
  )
  const env = { ...process.env, ANTHROPIC_BASE_URL: service.origin, ANTHROPIC_API_KEY: service.key }
  expect((await run(process.execPath, [path], { env, timeout: timeoutMs })).stdout).toContain(says)
})
