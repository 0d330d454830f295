// node --experimental-import-meta-resolve scripts/reachable.mjs FOLDER: prints, as JSON, the files of FOLDER/node_modules that the
// program in FOLDER/dist can load, for scripts/package.mjs. The other files, five of six, are types, source maps, tests, and the same code for
// browsers or in the other module format.
//
// It finds more than is loaded: every string that can be resolved counts, and CommonJS can load it with `require` and with `import`. It
// fails if a package computes the name of what it loads.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON } from 'node:module'
import { join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const folder = resolve(process.argv[2])
const program = join(folder, 'dist')
const packages = join(folder, 'node_modules') + sep
const names = /(["'`])((?:\.{1,2}(?:\/|(?=["'`]))|[#@a-z])[^"'`\s\\]*)\1/gi
const computed =
  /(?<![.\w$])(?:require|import)\((?!\)|\s*(?:\/\*.*?\*\/\s*)?["'])|\b__(?:dirname|filename)\b|\bimport\.meta\b/
/** What looks computed and is not a file of a package. */
const harmless = new Set([
  // A method is called `import`.
  '@peculiar/x509/build/x509.cjs.js',
  // Migrations in files of the user. We have none.
  'kysely/dist/migration/file-migration-provider.js',
])

const found = new Set()
const left = readdirSync(program, { recursive: true, encoding: 'utf8' }).map((name) => join(program, name))
while (left.length > 0) {
  const path = left.pop()
  if (!/\.[cm]?js$/.test(path)) continue
  const text = readFileSync(path, 'utf8')
  const name = relative(packages, path).replaceAll(sep, '/')
  if (path.startsWith(packages) && !harmless.has(name) && computed.test(text))
    throw new Error(`${name} computes the name of a file that it loads: find out whether that is a file of its package`)
  for (const target of targetsIn(text, path)) {
    if (found.has(target)) continue
    found.add(target)
    left.push(target)
  }
}
console.log(JSON.stringify([...found].map((path) => relative(folder, path).replaceAll(sep, '/'))))

/** The files of packages that the strings in a file resolve to. */
function targetsIn(text, path) {
  const url = pathToFileURL(path)
  const asImport = (specifier) => fileURLToPath(import.meta.resolve(specifier, url.href))
  const resolvers =
    isModule(path, url) && !text.includes('createRequire') ? [asImport] : [asImport, createRequire(path).resolve]
  const specifiers = new Set(Array.from(text.matchAll(names), ([, , specifier]) => specifier))
  return [...specifiers]
    .filter((specifier) => /^[.#]/.test(specifier) || existsSync(join(packages, packageName(specifier))))
    .flatMap((specifier) => resolvers.map((resolver) => resolved(resolver, specifier)))
    .filter((target) => target?.startsWith(packages) && existsSync(target) && statSync(target).isFile())
}

function isModule(path, url) {
  if (path.endsWith('.mjs')) return true
  return path.endsWith('.js') && JSON.parse(readFileSync(findPackageJSON('.', url), 'utf8')).type === 'module'
}

function packageName(specifier) {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function resolved(resolver, specifier) {
  try {
    return resolver(specifier)
  } catch {
    return undefined
  }
}
