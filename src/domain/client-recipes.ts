import { quoteForShell } from '../runtime/quote-for-shell.ts'
import type { ClientConfig } from './client-config.ts'
import {
  claudeKeyVariable,
  claudeOtherVariables,
  claudeVariables,
  codexSettings,
  opencodeConfig,
} from './client-settings.ts'

/** How to configure one client: the file or command, where it goes, and the next step. */
export interface ClientRecipe {
  readonly name: string
  readonly title: string
  readonly language: 'toml' | 'json' | 'yaml' | 'sh' | 'js' | 'python'
  write(clientConfig: ClientConfig): string
  /** A sentence. `{again}` is replaced by the command that prints the recipe. */
  readonly place: string
  readonly next: string
}

/** A string literal that is valid in JSON, TOML, YAML, JavaScript, and Python. */
const quote = (text: string): string => JSON.stringify(text)

const lines = (...text: readonly string[]): string => text.join('\n')

const exported = (variables: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(variables).map(([name, value]) => `export ${name}=${quoteForShell(value)}`)

/** Every client, in the order of the list. No recipe contains a key: each names its variable (contract 33.4). */
export const clientRecipes: readonly ClientRecipe[] = [
  {
    name: 'codex',
    title: 'Codex',
    language: 'toml',
    write(clientConfig) {
      const { top, table, provider } = codexSettings(clientConfig)
      const entries = (all: typeof top): string[] =>
        all.map(([key, value]) => `${key} = ${typeof value === 'string' ? quote(value) : value}`)
      return lines(...entries(top), '', `[${table}]`, ...entries(provider))
    },
    place:
      'Save it as a separate Codex profile in ~/.codex/svc-router.config.toml. If you add it to ~/.codex/config.toml instead, put the first two lines at its top, in place of your own model and model_provider, and the rest at its end. Then start Codex without --profile.',
    next: 'codex --profile svc-router',
  },
  {
    name: 'claude',
    title: 'Claude Code',
    language: 'sh',
    write: (clientConfig) =>
      lines(
        ...exported(claudeVariables(clientConfig)),
        `export ${claudeKeyVariable}="$${clientConfig.keyVariable}"`,
        `unset ${claudeOtherVariables.join(' ')}`,
      ),
    place:
      'Run these lines in the shell that starts Claude Code. Or, where svc-router is installed, run one command: eval "$({again})"',
    next: 'claude',
  },
  {
    name: 'opencode',
    title: 'opencode',
    language: 'json',
    write: (clientConfig) =>
      JSON.stringify({ $schema: 'https://opencode.ai/config.json', ...opencodeConfig(clientConfig) }, null, 2),
    place: 'Save it in opencode.json in your project, or in ~/.config/opencode/opencode.json.',
    next: 'opencode',
  },
  {
    name: 'aider',
    title: 'aider',
    language: 'sh',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        // The prefix selects the protocol. aider removes it before it sends the name.
        ...exported({ AIDER_OPENAI_API_BASE: baseUrl, AIDER_MODEL: `openai/${model}` }),
        `export AIDER_OPENAI_API_KEY="$${keyVariable}"`,
        'export AIDER_SHOW_MODEL_WARNINGS=false',
      ),
    place:
      'Run these lines in the shell that starts aider. Or, where svc-router is installed, run one command: eval "$({again})"',
    next: 'aider',
  },
  {
    name: 'openai',
    title: 'OpenAI SDK for JavaScript',
    language: 'js',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        "import OpenAI from 'openai'",
        '',
        `const client = new OpenAI({ baseURL: ${quote(baseUrl)}, apiKey: process.env.${keyVariable} })`,
        '',
        `const answer = await client.responses.create({ model: ${quote(model)}, input: 'Hello!' })`,
        'console.log(answer.output_text)',
      ),
    place: 'Save it as hello.mjs. Install the SDK first: npm install openai',
    next: 'node hello.mjs',
  },
  {
    name: 'openai-python',
    title: 'OpenAI SDK for Python',
    language: 'python',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        'import os',
        'from openai import OpenAI',
        '',
        `client = OpenAI(base_url=${quote(baseUrl)}, api_key=os.environ[${quote(keyVariable)}])`,
        `answer = client.responses.create(model=${quote(model)}, input="Hello!")`,
        'print(answer.output_text)',
      ),
    place: 'Save it as hello.py. Install the SDK first: pip install openai',
    next: 'python hello.py',
  },
  {
    name: 'ai-sdk',
    title: 'AI SDK',
    language: 'js',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        "import { createOpenAICompatible } from '@ai-sdk/openai-compatible'",
        "import { generateText } from 'ai'",
        '',
        'const svcRouter = createOpenAICompatible({',
        "  name: 'svc-router',",
        `  baseURL: ${quote(baseUrl)},`,
        `  apiKey: process.env.${keyVariable},`,
        '  includeUsage: true,',
        '  supportsStructuredOutputs: true,',
        '})',
        `const { text } = await generateText({ model: svcRouter(${quote(model)}), prompt: 'Hello!' })`,
        'console.log(text)',
      ),
    place: 'Save it as hello.mjs. Install the SDK first: npm install ai @ai-sdk/openai-compatible',
    next: 'node hello.mjs',
  },
  {
    name: 'cline',
    title: 'Cline',
    language: 'sh',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        '# In the editor, choose API Provider "OpenAI Compatible" in the Cline settings, and fill in:',
        `#   Base URL  ${baseUrl}`,
        `#   API Key   the value of ${keyVariable}`,
        `#   Model ID  ${model}`,
        '# At the command line:',
        `cline auth -p openai-compatible -b ${quoteForShell(baseUrl)} -m ${quoteForShell(model)} -k "$${keyVariable}"`,
      ),
    place:
      'Enter these values in the Cline settings. If you use Cline at the command line, run the last line instead. Cline stores the key in its own settings.',
    next: 'cline "Hello!"',
  },
  {
    name: 'continue',
    title: 'Continue',
    language: 'yaml',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        'name: svc-router',
        'version: 1.0.0',
        'schema: v1',
        'models:',
        `  - name: ${quote(model)}`,
        '    provider: openai',
        `    model: ${quote(model)}`,
        `    apiBase: ${quote(baseUrl)}`,
        `    apiKey: \${{ secrets.${keyVariable} }}`,
        '    roles: [chat, edit, apply, summarize]',
        '    capabilities: [tool_use, image_input]',
      ),
    place:
      'Save it as ~/.continue/config.yaml. Continue reads the key from ~/.continue/.env: in that file, set the variable that “apiKey” refers to.',
    next: 'choose the model in Continue’s chat',
  },
  {
    name: 'curl',
    title: 'curl',
    language: 'sh',
    write: ({ baseUrl, keyVariable, model }) =>
      lines(
        `curl -sS ${quoteForShell(`${baseUrl}/chat/completions`)} -H "authorization: Bearer $${keyVariable}" \\`,
        "  -H 'content-type: application/json' \\",
        `  -d '${JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }] })}'`,
      ),
    place:
      'This command works in bash, zsh, and other POSIX shells. Or, where svc-router is installed, run one command: {again} | sh',
    next: 'paste the command into your terminal',
  },
]
