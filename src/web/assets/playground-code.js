// The playground request as code samples. They name the key's environment variable and never contain the key.

/** @import { ChatRequest, PlaygroundSettings } from '../playground-types.ts' */

/** @param {string} text */
const quoteForShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`
/** @param {unknown} text */
const quote = (text) => JSON.stringify(text)

/** @param {ChatRequest} body @param {PlaygroundSettings} settings */
export function curlOf(body, { baseUrl, keyVariable }) {
  return [
    `curl -sS ${body.stream ? '-N ' : ''}${quoteForShell(`${baseUrl}/chat/completions`)} \\`,
    `  -H "Authorization: Bearer $${keyVariable}" \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d ${quoteForShell(JSON.stringify(body, null, 2))}`,
  ].join('\n')
}

/** @param {ChatRequest} body @param {PlaygroundSettings} settings */
export function pythonOf(body, { baseUrl, keyVariable }) {
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${quote(baseUrl)}, api_key=os.environ[${quote(keyVariable)}])`,
    'answer = client.chat.completions.create(',
    ...Object.entries(body).map(([name, value]) => `    ${name}=${inPython(value, '    ')},`),
    ')',
    ...(body.stream
      ? ['for chunk in answer:', '    if chunk.choices:', '        print(chunk.choices[0].delta.content or "", end="")']
      : ['print(answer.choices[0].message.content)']),
  ].join('\n')
}

/** @param {ChatRequest} body @param {PlaygroundSettings} settings */
export function javascriptOf(body, { baseUrl, keyVariable }) {
  return [
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI({ baseURL: ${quote(baseUrl)}, apiKey: process.env.${keyVariable} })`,
    `const answer = await client.chat.completions.create(${JSON.stringify(body, null, 2)})`,
    body.stream
      ? "for await (const chunk of answer) process.stdout.write(chunk.choices[0]?.delta.content ?? '')"
      : 'console.log(answer.choices[0].message.content)',
  ].join('\n')
}

/**
 * A JSON value as a Python literal.
 * @param {unknown} value
 * @param {string} indent
 * @returns {string}
 */
function inPython(value, indent) {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return quote(value)
  const isList = Array.isArray(value)
  const inner = `${indent}    `
  const entries = isList
    ? value.map((entry) => inPython(entry, inner))
    : Object.entries(value).map(([name, entry]) => `${quote(name)}: ${inPython(entry, inner)}`)
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  if (entries.length === 0) return open + close
  return `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}${close}`
}
