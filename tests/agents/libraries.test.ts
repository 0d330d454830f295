import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { documentedBlocks } from '../clients/docs.ts'
import { install, pythonEnvironment } from '../installing.ts'
import { Service } from '../service.ts'
import { installAgent } from './program.ts'

const run = promisify(execFile)
const page = 'agent-libraries.md'
const cache = join(import.meta.dirname, '..', '..', '.cache', 'agents')
const withinMs = 900_000
const expectedAnswer = 'This is a simulated answer from alpha. You said: "Hello!".'

/** Runs a program of one language in a folder that contains its dependencies, and returns its output. */
type Runner = (code: string) => Promise<string>

let service: Service
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'] })
})
afterAll(() => service.stop())

async function output(command: string, args: readonly string[], folder: string): Promise<string> {
  const env = {
    ...process.env,
    SVC_ROUTER_BASE_URL: service.baseUrl,
    SVC_ROUTER_API_KEY: service.key,
    // Programs that create no provider object read these variables.
    OPENAI_BASE_URL: service.baseUrl,
    OPENAI_API_KEY: service.key,
    // Without this, LiteLLM downloads its price list.
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  }
  return (await run(command, args, { cwd: folder, env, timeout: withinMs })).stdout
}

/** Runs Python with the packages of requirements/NAME.txt. */
const python =
  (name: string): Runner =>
  (code) => {
    const folder = join(cache, name)
    pythonEnvironment(folder, join(import.meta.dirname, 'requirements', `${name}.txt`))
    return output(join(folder, 'bin', 'python'), ['-c', code], folder)
  }

/** Runs JavaScript with one npm package. */
const javascript =
  (name: string, version: string): Runner =>
  (code) => {
    const folder = dirname(installAgent(name, version))
    const path = join(folder, '..', 'hello.mjs')
    writeFileSync(path, code)
    return output(process.execPath, [path], folder)
  }

/** Runs Go with one module. The first run compiles the module, which takes some minutes. */
const go =
  (module: string, version: string): Runner =>
  (code) => {
    const folder = join(cache, 'go')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'main.go'), code)
    if (!readdirSync(folder).includes('go.mod')) {
      install('go', ['-C', folder, 'mod', 'init', 'hello'])
      install('go', ['-C', folder, 'get', `${module}@${version}`])
    }
    return output('go', ['run', '.'], folder)
  }

/** Runs Java with one Maven artifact. */
const java =
  (artifact: string): Runner =>
  async (code) => {
    const [groupId, artifactId, version] = artifact.split(':')
    const folder = join(cache, artifactId!)
    mkdirSync(join(folder, 'src', 'main', 'java'), { recursive: true })
    writeFileSync(join(folder, 'src', 'main', 'java', 'Hello.java'), code)
    const dependency = `<groupId>${groupId}</groupId><artifactId>${artifactId}</artifactId><version>${version}</version>`
    writeFileSync(
      join(folder, 'pom.xml'),
      `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>hello</groupId><artifactId>hello</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties>
<dependencies><dependency>${dependency}</dependency></dependencies></project>`,
    )
    const goals = ['compile', 'org.codehaus.mojo:exec-maven-plugin:3.6.4:java', '-Dexec.mainClass=Hello']
    // Maven first prints a color reset.
    return stripVTControlCharacters(await output('mvn', ['--batch-mode', '--quiet', ...goals], folder))
  }

/** Runs Rust with these crates, given as lines of Cargo.toml. The first run compiles them, which takes some minutes. */
const rust =
  (...crates: readonly string[]): Runner =>
  (code) => {
    const folder = join(cache, 'rust')
    mkdirSync(join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, 'src', 'main.rs'), code)
    const manifest = [
      '[package]',
      'name = "hello"',
      'version = "1.0.0"',
      'edition = "2024"',
      '[dependencies]',
      ...crates,
    ].join('\n')
    writeFileSync(join(folder, 'Cargo.toml'), manifest)
    return output('cargo', ['run', '--quiet'], folder)
  }

const programs: readonly (readonly [heading: string, language: string, run: Runner])[] = [
  ['OpenAI Agents SDK for Python', 'python', python('agents')],
  ['OpenAI Agents SDK for JavaScript', 'js', javascript('@openai/agents', '0.20.0')],
  ['LangChain for Python', 'python', python('agents')],
  ['LangChain for JavaScript', 'js', javascript('@langchain/openai', '1.6.0')],
  ['LlamaIndex', 'python', python('llama-index')],
  ['Pydantic AI', 'python', python('agents')],
  ['LiteLLM and libraries on top of it', 'python', python('litellm')],
  ['Go', 'go', go('github.com/openai/openai-go/v3', 'v3.96.0')],
  ['Java', 'java', java('com.openai:openai-java:4.101.0')],
  ['LangChain4j', 'java', java('dev.langchain4j:langchain4j-open-ai:1.19.0')],
  [
    'Rust',
    'rust',
    rust(
      'async-openai = { version = "=0.43.0", features = ["chat-completion"] }',
      'tokio = { version = "1", features = ["macros", "rt-multi-thread"] }',
    ),
  ],
]

test.each(programs)(
  'the programs of docs/agent-libraries.md run without changes: %s',
  async (heading, language, runProgram) => {
    const blocks = documentedBlocks(heading, language, page)
    expect(blocks.length).toBeGreaterThan(0)
    for (const code of blocks) expect((await runProgram(code)).trim()).toBe(expectedAnswer)
  },
  withinMs,
)
