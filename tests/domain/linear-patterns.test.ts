import { readdirSync, readFileSync } from 'node:fs'
import { parseSync } from 'vite'
import { describe, expect, test } from 'vitest'

const src = new URL('../../src/', import.meta.url)

/** For an input of this many characters a quadratic pattern takes several milliseconds, a linear one far less than one. */
const characters = 4_000
const suspiciousMs = 0.5
/** No linear pattern takes so long for it. */
const certainMs = 30
/** With this many repetitions, an exponential pattern takes seconds and any other takes microseconds. */
const fewRepeats = 26
const fewMs = 10
/** For four times the input a linear pattern takes about 4 times as long, a quadratic one 16 times. */
const growth = 4
const maxRatio = 9

interface Literal {
  readonly where: string
  readonly source: string
  readonly flags: string
}

/** Every regular expression literal of src/. */
function literalsOf(path: string): Literal[] {
  const text = readFileSync(new URL(path, src), 'utf8')
  const found: Literal[] = []
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(walk)
    if (typeof node !== 'object' || node === null) return
    const { regex, start } = node as { regex?: { pattern: string; flags: string }; start: number }
    if (regex !== undefined) {
      const where = `${path}:${text.slice(0, start).split('\n').length}`
      found.push({ where, source: regex.pattern, flags: regex.flags })
    }
    for (const value of Object.values(node)) walk(value)
  }
  walk(parseSync(path, text).program)
  return found
}

/**
 * Inputs that make a pattern backtrack if anything does: what it names, once, then one or two pieces of it repeated,
 * then what it does not expect.
 */
function worstInputs(source: string): (readonly [prefix: string, pump: string, suffix: string])[] {
  const plain = source
    .replaceAll(/\(\?(?:<?[=!]|:)|(?<!\\)[()^$]|\\[bB]/g, ' ')
    .replaceAll(/(?<!\\)(?:[+*?]|\{\d+(?:,\d*)?\})/g, ' ')
    .replaceAll(/\\([^A-Za-z0-9])/g, '$1')
  const words = [...plain.matchAll(/[A-Za-z0-9]+|[^A-Za-z0-9\s]{1,5}/g)].flatMap(([word]) => [word, word.slice(0, 1)])
  const named = [...new Set(words)].slice(0, 12)
  const inClasses = [' ', '\t', '\n', 'a', 'A', '0', '-', '/'].filter((one) => new RegExp(kindOf(one)).test(source))
  const pieces = [...new Set([...named, ...inClasses])]
  const afterOne = ['', ...named].flatMap((prefix) => pieces.map((pump) => [prefix, pump] as const))
  const inPairs = pieces.flatMap((one) => pieces.map((two) => ['', one + two] as const))
  return [...afterOne, ...inPairs].map(([prefix, pump]) => [prefix, pump, '\u0000\n'])
}

/** What in a pattern's source can match a character without naming it. */
function kindOf(one: string): string {
  if (one === '\n') return String.raw`\\n|\\s`
  if (/\s/.test(one)) return String.raw`\\s|\[\^|\.|\\p| `
  return String.raw`\[|\\w|\\S|\\d|\.|\\p`
}

function build([prefix, pump, suffix]: readonly [string, string, string], length: number): string {
  return prefix + pump.repeat(Math.ceil(length / pump.length)) + suffix
}

/** Processor time of this thread, in milliseconds, for finding every match. */
function spentMs(pattern: RegExp, text: string): number {
  const start = process.threadCpuUsage()
  text.replace(pattern, '')
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1000
}

function leastMs(pattern: RegExp, text: string): number {
  return Math.min(...Array.from({ length: 3 }, () => spentMs(pattern, text)))
}

/** The growth of a pattern's time on an input; 1 where that input is no trouble. Once, a slow match can be a garbage collection. */
function ratioFor(pattern: RegExp, input: readonly [string, string, string]): number {
  const few = build(input, fewRepeats * input[1].length)
  if (spentMs(pattern, few) > fewMs && leastMs(pattern, few) > fewMs) return Infinity
  const text = build(input, characters)
  if (spentMs(pattern, text) < suspiciousMs) return 1
  const ms = leastMs(pattern, text)
  if (ms > certainMs) return Infinity
  if (ms < suspiciousMs) return 1
  const longer = build(input, characters * growth)
  return Math.min(spentMs(pattern, longer), spentMs(pattern, longer)) / ms
}

const literals = (readdirSync(src, { recursive: true }) as string[])
  .filter((path) => /\.(?:ts|js)$/.test(path))
  .toSorted()
  .flatMap(literalsOf)

describe('regular expressions take linear time (contract 29.9)', () => {
  test('the search for worst-case inputs finds quadratic patterns', () => {
    const quadratic = [/\/+$/, /\s+$/, /^## +(.+)$/]
    const missed = quadratic.filter((pattern) =>
      worstInputs(pattern.source).every((input) => ratioFor(pattern, input) < maxRatio),
    )
    expect(missed).toEqual([])
  })

  test('every pattern in src/ takes linear time', () => {
    expect(literals.length).toBeGreaterThan(250)
    const slow = literals.flatMap(({ where, source, flags }) => {
      const pattern = new RegExp(source, flags)
      const input = worstInputs(source).find((each) => ratioFor(pattern, each) >= maxRatio)
      return input === undefined ? [] : [`${where} /${source}/${flags} on ${JSON.stringify(input)}`]
    })
    expect(slow).toEqual([])
  })
})
