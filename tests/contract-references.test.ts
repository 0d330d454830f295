import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { errorCatalog } from '../src/domain/errors.ts'

const root = new URL('../', import.meta.url)
const searchedFolders = ['src', 'tests', 'docs', 'scripts', 'bench', 'bin']
const searchedFiles = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'svc-router.example.yaml']
const contractPath = 'docs/contract.md'
/** Excludes this file, which names forbidden documents, and recordings, whose text is not ours. */
const passedOver = /^tests\/contract-references\.test\.ts$|^tests\/fixtures\//
const hasReferences = /\.(?:ts|mjs|js|md|py|css|sh|yaml)$/

/** Space within a reference, which may continue on the next line of a comment. */
const gap = String.raw`(?: |\s*\n\s*(?:\*|//|#)?\s*)`
/** A section, a row, or a range of rows of one section: `14`, `4.3`, `4.12-4.56`. */
const contractNumber = String.raw`\d+(?:\.\d+(?:-\d+\.\d+)?)?`
const contractReference = new RegExp(
  String.raw`\bcontract${gap}(${contractNumber}(?:(?:,${gap}(?:and )?|${gap}and )${contractNumber}(?![\w%]))*)`,
  'gi',
)
const decisionReference = new RegExp(
  String.raw`\bdecisions?(?:/|${gap})(\d+[a-z]?(?:(?:,${gap}(?:and )?|${gap}and )\d+[a-z]?)*)(?!\w)`,
  'gi',
)
/** Documents that are not in this repository. */
const foreign = new RegExp(
  [
    String.raw`\b(?:spec|architecture|wire|reliability|research(?: \w+)?)${gap}T?\d+(?:\.\d+)*\b`,
    String.raw`\bfindings?${gap}[A-C]\d+\b`,
    'findings-20',
    String.raw`\((?:research\b|issue \d)`,
    String.raw`(?<![\w.-])(?:shared|research)/`,
  ].join('|'),
  'i',
)

const files: ReadonlyMap<string, string> = new Map(
  [
    ...searchedFolders.flatMap((folder) =>
      readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
    ),
    ...searchedFiles,
  ]
    .filter((path) => hasReferences.test(path) && !passedOver.test(path))
    .map((path) => [path, readFileSync(new URL(path, root), 'utf8')]),
)
const contract = files.get(contractPath)!
const sections = Array.from(contract.matchAll(/^## (\d+)\. /gm), ([, number]) => number!)
/** Numbers of rows such as `4.3`: paragraphs that begin with one in bold, and rows of tables. */
const rows = Array.from(contract.matchAll(/^(?:\*\*|\| )(\d+\.\d+)(?:\*\* | +\|)/gm), ([, number]) => number!)

/** Every number in references of one kind, with its file. */
function referencesOf(shape: RegExp, paths: Iterable<string>): { readonly path: string; readonly number: string }[] {
  return Array.from(paths).flatMap((path) =>
    Array.from(files.get(path)!.matchAll(shape)).flatMap(([, list]) =>
      Array.from(list!.matchAll(/(\d+(?:\.\d+)?[a-z]?)(?:-(\d+\.\d+))?/g)).flatMap(([, from, to]) =>
        rowsBetween(from!, to).map((number) => ({ path, number })),
      ),
    ),
  )
}

/** The rows of a range. For an invalid range, returns its text, which matches no row. */
function rowsBetween(from: string, to = from): readonly string[] {
  if (to === from) return [from]
  const [first, last] = [rows.indexOf(from), rows.indexOf(to)]
  const isRange = first >= 0 && last > first && from.split('.')[0] === to.split('.')[0]
  return isRange ? rows.slice(first, last + 1) : [`${from}-${to}`]
}

test('the rows of the contract have unique, ascending numbers, each in its own section', () => {
  expect(sections).toEqual(sections.map((_, index) => String(index + 1)))
  expect(rows.length).toBeGreaterThan(sections.length)
  const places = rows.map((row) => row.split('.').map(Number))
  for (const [index, [section, row]] of places.entries()) {
    const [sectionBefore, rowBefore] = places[index - 1] ?? [0, 0]
    expect(section! > sectionBefore! || (section === sectionBefore && row! > rowBefore!), rows[index]).toBe(true)
  }
  for (const [index, text] of contract.split(/^## \d+\. /m).entries()) {
    const own = Array.from(text.matchAll(/^(?:\*\*|\| )(\d+)\.\d+(?:\*\* | +\|)/gm), ([, section]) => section)
    expect(new Set(own)).toEqual(new Set(index === 0 ? [] : [String(index)]))
  }
})

test('every row of the contract that a file names exists', () => {
  const known = new Set([...sections, ...rows])
  const found = referencesOf(contractReference, files.keys())
  expect(found.length).toBeGreaterThan(100)
  expect(found.filter(({ number }) => !known.has(number))).toEqual([])
})

test('every row of the contract is cited by the code that implements it', () => {
  const code = [...files.keys()].filter((path) => path.startsWith('src/'))
  const cited = new Set(referencesOf(contractReference, code).map(({ number }) => number))
  expect(rows.filter((row) => !cited.has(row))).toEqual([])
})

test('section 4 of the contract lists exactly the codes and statuses of the error catalog', () => {
  const listed = Array.from(
    contract.matchAll(/^\| 4\.\d+ +\| `(\w+)` +\| (\d{3})/gm),
    ([, code, status]) => `${code} ${status}`,
  )
  const catalog = Object.entries(errorCatalog).map(([code, { status }]) => `${code} ${status}`)
  expect(new Set(listed)).toEqual(new Set(catalog))
})

test('every decision that a file names exists', () => {
  const names = readdirSync(new URL('docs/decisions', root))
  const known = new Set(names.map((name) => /^0*(\d+[a-z]?)-/.exec(name)?.[1]))
  const found = referencesOf(decisionReference, files.keys())
  expect(found.length).toBeGreaterThan(20)
  expect(found.filter(({ number }) => !known.has(number.replace(/^0+/, '')))).toEqual([])
})

test('no file names a document that is not in this repository', () => {
  const found = Array.from(files, ([path, text]) => ({ path, found: foreign.exec(text)?.[0] }))
  expect(found.filter((one) => one.found !== undefined)).toEqual([])
})
