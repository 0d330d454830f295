import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Node, type Pair, type Scalar } from 'yaml'
import type { Place, Problem } from './problems.ts'

type Path = readonly PropertyKey[]

/** A YAML file read: its plain value, empty settings left out, and where each setting stands. */
export interface ConfigDocument {
  readonly value: unknown
  /** What keeps the text from being YAML, or one map. The value is empty then. */
  readonly problems: readonly Problem[]
  /** The place of a setting's name or value; of the nearest setting around it where it is not in the file. */
  placeOf(path: Path, part: 'name' | 'value'): Place | undefined
  /** Whether the file says anything at this path. */
  has(path: Path): boolean
  /** Every text in the file, names included, with its place. */
  texts(): readonly { readonly text: string; readonly place: Place }[]
}

const maxAliases = 100

const syntaxProblems: Readonly<Record<string, readonly [what: string, fix: string]>> = {
  DUPLICATE_KEY: ['the same setting stands here twice', 'keep one of the two'],
  TAB_AS_INDENT: ['a tab is used for indentation', 'indent with spaces'],
  BAD_INDENT: ['the indentation does not fit the lines around it', 'align it with the settings of the same level'],
  MULTIPLE_DOCS: [
    'the file holds more than one YAML document',
    'keep one document and remove the lines with only "---"',
  ],
  MISSING_CHAR: [
    'a quote, a bracket, a colon or a space is missing',
    'complete it; texts with special characters need quotes',
  ],
  BLOCK_AS_IMPLICIT_KEY: [
    'this cannot stand behind a setting on the same line',
    'put it on a line of its own, indented, or in quotes',
  ],
}
const otherSyntaxProblem = ['this is not valid YAML', 'check the quotes, colons and indentation of this line'] as const

/** Reads a configuration file's text, keeping positions. Never throws: what is wrong is in `problems`. */
export function readDocument(text: string): ConfigDocument {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false })
  const lines = text.split(/\r?\n/)
  const root = document.contents

  function placeOfRange(start: number, end: number): Place {
    const { line, col } = counter.linePos(start)
    return { line, column: col, length: Math.max(1, end - start), text: lines[line - 1] ?? '' }
  }
  const placeOfNode = (node: Node): Place => placeOfRange(node.range?.[0] ?? 0, node.range?.[1] ?? 0)

  const problems: Problem[] = document.errors.map((error) => {
    const [what, fix] = syntaxProblems[error.code] ?? otherSyntaxProblem
    return { what, fix, place: placeOfRange(error.pos[0], error.pos[1]), hide: false }
  })
  let value: unknown = {}
  if (problems.length === 0 && root !== null) {
    if (isMap(root)) {
      try {
        value = withoutNulls(document.toJS({ maxAliasCount: maxAliases }))
      } catch {
        problems.push({
          what: 'the file repeats itself too often through aliases',
          fix: 'write the settings out',
          place: undefined,
          hide: false,
        })
      }
    } else if (!(isScalar(root) && root.value === null)) {
      problems.push({
        what: 'the file must be a map of settings',
        fix: 'write "name: value" lines, for example "mode: local"',
        place: placeOfNode(root),
        hide: false,
      })
    }
  }

  return {
    value,
    problems,
    placeOf(path, part) {
      const found = walk(root, path)
      if (found.pair !== undefined && (found.depth < path.length || part === 'name' || found.node === undefined)) {
        return placeOfNode(found.pair.key)
      }
      return found.depth > 0 && found.node !== undefined ? placeOfNode(found.node) : undefined
    },
    has: (path) => walk(root, path).depth === path.length,
    texts: () => collectTexts(root).map((node) => ({ text: String(node.value), place: placeOfNode(node) })),
  }
}

interface Found {
  /** How many steps of the path exist. */
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

/** A setting with nothing behind its colon counts as not set. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutNulls(inner)]))
}
