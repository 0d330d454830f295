import { type Json, isObject } from '../../domain/json.ts'
import { fitsSchema } from '../../gateway/fusion/engine/answer/schema-fit.ts'
import type { Expected } from './question.ts'

/** How much of the end of a reply is examined. */
const maxCharacters = 65_536
/** A label, with any emphasis that a model puts around it. */
const label = /^[\s>*_#`-]*(?:final\s+)?answer[\s*_`]*[:：][\s*_]*(.*)$/is
const numberTolerance = 1e-9
const shortUnits: Readonly<Record<string, readonly string[]>> = {
  grams: ['g'],
  kilograms: ['kg'],
  hours: ['h'],
  seconds: ['s'],
  degrees: ['°'],
  cm: ['centimetres', 'centimeters'],
  bytes: ['B'],
  '%': ['percent', 'per cent'],
}

/** The text after the last `ANSWER:` of a reply; undefined if there is none. Emphasis around it is removed. */
export function findAnswer(reply: string): string | undefined {
  const lines = reply.slice(-maxCharacters).split(/\r?\n/)
  const at = lines.findLastIndex((line) => label.test(line))
  if (at < 0) return undefined
  const same = (label.exec(lines[at]!)?.[1] ?? '').trim()
  // Some models put the answer on the next line, or in a code block.
  const rest = lines.slice(at + 1).join('\n')
  const found = same === '' || same.startsWith('```') ? unfence(`${same}\n${rest}`) : same
  const bare = strip(found)
  return bare === '' ? undefined : bare
}

/** Whether a reply's answer is right. Strict about content, lenient about notation. */
export function isRight(expected: Expected, reply: string): boolean {
  const found = findAnswer(reply)
  return found !== undefined && isRightAnswer(expected, found)
}

/** The same for the text after `ANSWER: `. */
export function isRightAnswer(expected: Expected, answer: string): boolean {
  const said = keyOf(expected, answer)
  if (said === undefined) return false
  if (expected.kind === 'words')
    return [expected.value, ...(expected.others ?? [])].some((value) => keyOf(expected, value) === said)
  if (expected.kind === 'number') return Math.abs(Number(said) - expected.value) <= numberTolerance
  const right = expected.kind === 'json' ? JSON.stringify(expected.value) : expected.value
  return said === keyOf(expected, right)
}

/** The canonical form of an answer, to count votes; undefined if the required form is missing. */
export function keyOf(expected: Expected, answer: string): string | undefined {
  switch (expected.kind) {
    case 'number':
      return readNumber(answer, expected.unit)
    case 'words':
      return readWords(answer)
    case 'exact':
      return unquote(answer).replace(/\s+/g, ' ').replace(/\.$/, '')
    case 'numbers':
      return readNumbers(answer)
    case 'time':
      return readTime(answer)
    case 'json':
      return readJson(answer, expected)
  }
}

function readNumber(answer: string, unit: string | undefined): string | undefined {
  const text = answer
    .replace(/\\[,;!]|\\text\{|[{}$€£]|\\/g, ' ')
    .replace(/[−–]/g, '-')
    .replace(/[.。]$/, '')
    .trim()
  const bare = unit === undefined ? text : withoutUnit(text, unit)
  const match = /^([-+]?)\s*(\d{1,3}(?:[, _]\d{3})+|\d+)(\.\d+)?(?:\s*\/\s*([1-9]\d*))?$/.exec(bare)
  if (match === null) return undefined
  const [, sign, whole, decimals = '', divisor = '1'] = match
  const size = Number(`${whole!.replace(/[, _]/g, '')}${decimals}`) / Number(divisor)
  return String(sign === '-' && size !== 0 ? -size : size)
}

/** Without the unit of the question, spelled out or abbreviated, singular or plural. */
function withoutUnit(text: string, unit: string): string {
  const ways = [unit, unit.replace(/s$/, ''), ...(shortUnits[unit] ?? [])]
  const way = ways.find((name) => text.toLowerCase().endsWith(name.toLowerCase()))
  return way === undefined ? text : text.slice(0, -way.length).trim()
}

function readWords(answer: string): string | undefined {
  const text = unquote(answer)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/(?<![.!。])[.!。]+$/, '')
    .replace(/[-‐‑]/g, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ ?([,;]) ?/g, '$1')
    .replace(/^(?:the|an?) /, '')
    .trim()
  return text === '' ? undefined : text
}

function readNumbers(answer: string): string | undefined {
  const text = answer.replace(/[−–]/g, '-').replace(/^[[(]|[\])]?\.?$/g, '')
  const all = text
    .replace(/\s+/g, ' ')
    .replace(/ and /gi, ',')
    .split(/ ?[,;] ?| /)
    .filter((part) => part !== '')
  return all.length > 0 && all.every((part) => /^[-+]?\d+$/.test(part)) ? all.map(Number).join(', ') : undefined
}

function readTime(answer: string): string | undefined {
  const match = /^(\d{1,2})[:.](\d{2})(?::00)?\s*(am|pm)?\.?$/i.exec(answer.trim())
  if (match === null) return undefined
  const half = match[3]?.toLowerCase()
  let hours = Number(match[1])
  if (half !== undefined) {
    if (hours < 1 || hours > 12) return undefined
    hours = (hours % 12) + (half === 'pm' ? 12 : 0)
  }
  if (hours > 23 || Number(match[2]) > 59) return undefined
  return `${String(hours).padStart(2, '0')}:${match[2]}`
}

function readJson(answer: string, { schema }: Extract<Expected, { kind: 'json' }>): string | undefined {
  try {
    const value = JSON.parse(answer) as Json
    return fitsSchema(value, schema) ? JSON.stringify(sorted(value)) : undefined
  } catch {
    // The question required JSON, so anything else is no answer.
    return undefined
  }
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map((entry: Json) => sorted(entry))
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name]!)]))
}

/** Without emphasis around an answer. */
function strip(text: string): string {
  let bare = text.trim()
  const boxed = /^\$*\\boxed\{(.*)\}\$*$/s.exec(bare)
  if (boxed !== null) bare = boxed[1]!.trim()
  for (const mark of ['**', '__', '`', '*']) {
    if (bare.length > 2 * mark.length && bare.startsWith(mark) && bare.endsWith(mark))
      bare = bare.slice(mark.length, -mark.length).trim()
    else if (bare.endsWith(mark) && !bare.slice(0, -mark.length).includes(mark))
      bare = bare.slice(0, -mark.length).trim()
  }
  return bare
}

function unfence(text: string): string {
  const [, fenced, behind] = text.split('```', 3)
  if (fenced === undefined || behind === undefined) return (text.trim().split('\n', 1)[0] ?? '').trim()
  return fenced.replace(/^[a-z]*/i, '').trim()
}

function unquote(text: string): string {
  const bare = text.trim()
  const quoted = /^(["'“‘«])(.*)(["'”’»])$/s.exec(bare)
  return quoted === null ? bare : quoted[2]!
}
