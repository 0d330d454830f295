import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Node, type Pair, type Scalar } from 'yaml'
import type { SourceLocation, Problem } from './problems.ts'

type Path = readonly PropertyKey[]

/** A parsed YAML file: its plain value without empty settings, and the position of each setting. */
export interface ConfigDocument {
  readonly value: unknown
  /** Syntax errors, or that the file is not a map. If there are any, the value is empty. */
  readonly problems: readonly Problem[]
  /** The position of a setting's name or value or, if it is not in the file, of the closest enclosing setting. */
  locationOf(path: Path, part: 'name' | 'value'): SourceLocation | undefined
  /** Whether the file has a value at this path. */
  has(path: Path): boolean
  /** Every string in the file, including names, with its position. */
  texts(): readonly FoundText[]
}

/** A string, with its path if it has no position. */
interface FoundText {
  readonly text: string
  readonly location: SourceLocation | undefined
  readonly path?: Path
}

const maxAliases = 100

const syntaxProblems: Readonly<Record<string, readonly [what: string, fix: string]>> = {
  TAB_AS_INDENT: ['a tab is used for indentation', 'indent with spaces'],
  BAD_INDENT: [
    'the indentation does not match the surrounding lines',
    'align it with the other settings of this level',
  ],
  MULTIPLE_DOCS: [
    'the file contains more than one YAML document',
    'keep one document and remove the lines with only "---"',
  ],
  MISSING_CHAR: ['a quote, bracket, colon, or space is missing', 'add it; values with special characters need quotes'],
  BLOCK_AS_IMPLICIT_KEY: [
    'this is not allowed after a setting on the same line',
    'put it on its own indented line, or quote it',
  ],
}
const duplicateProblem = { what: 'this setting appears twice', fix: 'keep one of the two', hide: false }
const otherSyntaxProblem = ['this is not valid YAML', 'check the quotes, colons, and indentation of this line'] as const

/** Parses the text of a configuration file and records positions. Never throws: errors are in `problems`. */
export function readDocument(text: string, nulls: 'unset' | 'kept' = 'unset'): ConfigDocument {
  const counter = new LineCounter()
  // The library's own search for names that appear twice compares each with every other one.
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, uniqueKeys: false })
  const lines = text.split(/\r?\n/)
  const root = document.contents

  function locationOfRange(start: number, end: number): SourceLocation {
    const { line, col } = counter.linePos(start)
    return { line, column: col, length: Math.max(1, end - start), text: lines[line - 1] ?? '' }
  }
  const locationOfNode = (node: Node): SourceLocation => locationOfRange(node.range?.[0] ?? 0, node.range?.[1] ?? 0)

  const problems: Problem[] = document.errors.map((error) => {
    const [what, fix] = syntaxProblems[error.code] ?? otherSyntaxProblem
    return { what, fix, location: locationOfRange(error.pos[0], error.pos[1]), hide: false }
  })
  for (const key of repeatedNames(root)) problems.push({ ...duplicateProblem, location: locationOfNode(key) })
  let value: unknown = {}
  if (problems.length === 0 && root !== null) {
    if (isMap(root)) {
      try {
        const read: unknown = document.toJS({ maxAliasCount: maxAliases })
        value = nulls === 'unset' ? withoutNulls(read) : read
      } catch {
        problems.push({
          what: 'the file uses too many YAML aliases',
          fix: 'repeat the settings instead of using aliases',
          location: undefined,
          hide: false,
        })
      }
    } else if (!(isScalar(root) && root.value === null)) {
      problems.push({
        what: 'the file must be a map of settings',
        fix: 'write "name: value" lines, for example "mode: local"',
        location: locationOfNode(root),
        hide: false,
      })
    }
  }

  return {
    value,
    problems,
    locationOf(path, part) {
      const found = walk(root, path)
      if (found.pair !== undefined && (found.depth < path.length || part === 'name' || found.node === undefined)) {
        return locationOfNode(found.pair.key)
      }
      return found.depth > 0 && found.node !== undefined ? locationOfNode(found.node) : undefined
    },
    has: (path) => walk(root, path).depth === path.length,
    texts: () => collectTexts(root).map((node) => ({ text: String(node.value), location: locationOfNode(node) })),
  }
}

interface Found {
  /** How many segments of the path exist. */
  readonly depth: number
  readonly pair: Pair<Node, Node | null> | undefined
  readonly node: Node | undefined
}

function walk(root: Node | null, path: Path): Found {
  let node: Node | undefined = root ?? undefined
  let pair: Pair<Node, Node | null> | undefined
  let depth = 0
  for (const step of path) {
    if (isMap<Node, Node | null>(node)) {
      const next = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(step))
      if (next === undefined) break
      pair = next
      node = next.value ?? undefined
    } else if (isSeq<Node>(node)) {
      const next = node.items[Number(step)]
      if (next === undefined) break
      pair = undefined
      node = next
    } else break
    depth += 1
  }
  return { depth, pair, node }
}

function collectTexts(node: Node | null | undefined): Scalar[] {
  if (isScalar(node)) return [node]
  if (isMap<Node, Node | null>(node))
    return node.items.flatMap((item) => [...collectTexts(item.key), ...collectTexts(item.value)])
  if (isSeq<Node>(node)) return node.items.flatMap((item) => collectTexts(item))
  return []
}

/** The names that a map has more than once, except where it has them first. */
function repeatedNames(node: Node | null | undefined): Scalar[] {
  if (isSeq<Node>(node)) return node.items.flatMap((item) => repeatedNames(item))
  if (!isMap<Node, Node | null>(node)) return []
  const known = new Set<string>()
  return node.items.flatMap(({ key, value }) => {
    const isRepeated = isScalar(key) && known.has(String(key.value))
    if (isScalar(key)) known.add(String(key.value))
    return [...(isRepeated ? [key] : []), ...repeatedNames(value)]
  })
}

/** A document of values that have no text of their own, with the positions of another one. */
export function documentOf(value: unknown, positions?: ConfigDocument): ConfigDocument {
  return {
    value,
    problems: [],
    locationOf: (path, part) => positions?.locationOf(path, part),
    has: (path) => hasPath(value, path),
    texts: () => textsIn(value, []),
  }
}

function hasPath(value: unknown, path: Path): boolean {
  let inner = value
  for (const step of path) {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, step)) return false
    inner = (inner as Record<PropertyKey, unknown>)[step]
  }
  return inner !== undefined
}

function textsIn(value: unknown, path: Path): FoundText[] {
  if (typeof value === 'string') return [{ text: value, location: undefined, path }]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = [...path, name]
    const named = Array.isArray(value) ? [] : [{ text: name, location: undefined, path: at }]
    return [...named, ...textsIn(inner, at)]
  })
}

/** Treats a setting without a value as not set. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutNulls(inner)]))
}
