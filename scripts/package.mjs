// npm run package [-- FOLDER]: the published package svc-router-VERSION.tgz and its bill of materials (CycloneDX), in dist or
// the folder that is named. The same commit gives the same bytes with the same versions of Node and npm. The package contains the packages
// that the program needs, so that every installation has exactly the tested ones.
//
// `npm pack` alone would pack no program: .npmrc turns all scripts off, so that no dependency can run one.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { oldestNode } from '../bin/boot.mjs'

const timeoutMs = 300_000
const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'dist'))
/**
 * An installed package runs on the Node that its user has: the pinned one, which a checkout gets as an optional package,
 * takes almost half of the time to the first answer.
 */
const publishedNode = `>=${oldestNode.join('.')}`
const executables = ['bin/svc-router.mjs']
/** Half of the files of packages. Node loads none of them. */
const notCode = /\.(?:[cm]?tsx?|map)$/
/** What is kept of a bundled package besides the code. A README can be all that states its license. */
const kept = /^(?:package\.json$|licen[cs]e|notice|copying|copyright|authors|patents|readme)/i

const manifest = readJson('package.json')
const { name, version, description, license, repository, bin, type, dependencies } = manifest
const files = [...manifest.files, 'CHANGELOG.md', 'SECURITY.md']
const published = {
  name,
  version,
  description,
  license,
  repository,
  bin,
  files,
  type,
  dependencies,
  // npm adds what these need.
  bundleDependencies: Object.keys(dependencies),
  engines: { node: publishedNode },
}

const lock = neededLock()
const temporary = mkdtempSync(join(tmpdir(), 'svc-router-package-'))
// `npm sbom` names the program after its folder.
const stage = join(temporary, manifest.name)
try {
  writeStage()
  pack()
  const bill = billOfMaterials()
  const file = `${manifest.name}-${manifest.version}`
  const path = join(target, file)
  mkdirSync(target, { recursive: true })
  cpSync(join(temporary, `${file}.tgz`), `${path}.tgz`)
  writeFileSync(`${path}.cdx.json`, writeJson(bill))
  console.log(`${path}.tgz\n${path}.cdx.json`)
} finally {
  rmSync(temporary, { recursive: true, force: true })
}

/** Writes the files of the package into `stage`. */
function writeStage() {
  for (const name of [...manifest.files, 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE'])
    if (name !== 'dist') cpSync(join(root, name), join(stage, name), { recursive: true })
  run(process.execPath, [join(root, 'scripts', 'build.mjs'), join(stage, 'dist')])
  writeFileSync(join(stage, 'package.json'), writeJson(published))
  bundlePackages()
  // npm copies modes, and those of a checkout depend on the umask of its owner.
  for (const name of readdirSync(stage, { recursive: true, encoding: 'utf8' })) {
    const path = join(stage, name)
    chmodSync(path, statSync(path).isDirectory() || executables.includes(name) ? 0o755 : 0o644)
  }
}

/** The lock file without the packages that only a checkout needs. */
function neededLock() {
  const lock = readJson('package-lock.json')
  const left = new Set(['', ...Object.keys(manifest.optionalDependencies).map((key) => `node_modules/${key}`)])
  const packages = Object.entries(lock.packages).filter(
    ([path, { dev, devOptional }]) => dev !== true && devOptional !== true && !left.has(path),
  )
  return { ...lock, packages: Object.fromEntries([['', published], ...packages]) }
}

/** Copies the packages that the program needs into `stage`, without the files that it cannot load. */
function bundlePackages() {
  const packages = Object.entries(lock.packages).filter(([path]) => path !== '')
  for (const [path, entry] of packages) copyPackage(path, entry)
  const trace = join(root, 'scripts', 'reachable.mjs')
  const code = JSON.parse(run(process.execPath, ['--experimental-import-meta-resolve', trace, stage]))
  // npm 7 installs nothing if it cannot make these executable.
  const programs = packages.flatMap(([path, { bin = {} }]) => Object.values(bin).map((name) => `${path}/${name}`))
  const needed = new Set([...code, ...programs])
  for (const name of filesIn(stage).filter((path) => path.startsWith('node_modules/')))
    if (!needed.has(name) && !kept.test(basename(name))) rmSync(join(stage, name))
}

/** Copies an installed package into `stage`. */
function copyPackage(path, { version, hasInstallScript, os, cpu }) {
  if (hasInstallScript || os !== undefined || cpu !== undefined)
    throw new Error(`${path} runs a script when it is installed, or is not for every platform, so it cannot be bundled`)
  const installed = installedVersion(path)
  if (installed !== version)
    throw new Error(`${path} has version ${installed}, and package-lock.json has ${version}. Run npm ci first`)
  // The packages in a package are copied only if they are needed.
  const inner = join(root, path, 'node_modules')
  const filter = (from) => from !== inner && !notCode.test(from)
  cpSync(join(root, path), join(stage, path), { recursive: true, filter })
}

function installedVersion(path) {
  try {
    return readJson(join(path, 'package.json')).version
  } catch {
    return 'none'
  }
}

/** Packs `stage`. npm packs what it thinks that each package needs, which must be everything. */
function pack() {
  const report = run('npm', ['pack', '--json', '--ignore-scripts', '--offline', '--pack-destination', temporary])
  const packed = new Set(Object.values(JSON.parse(report))[0].files.map((file) => file.path))
  const missing = filesIn(stage).filter((name) => !packed.has(name))
  if (missing.length > 0) throw new Error(`npm left out of the package: ${missing.join(', ')}`)
}

/** The paths of all files in a folder. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
}

/** What npm reports, without the time and the random number, which would make each build differ. */
function billOfMaterials() {
  // npm never packs a file of this name.
  writeFileSync(join(stage, 'package-lock.json'), writeJson(lock))
  const report = run('npm', [
    'sbom',
    '--sbom-format=cyclonedx',
    '--sbom-type=application',
    '--package-lock-only',
    '--offline',
  ])
  const { serialNumber: _serialNumber, metadata, ...bill } = JSON.parse(report)
  const { timestamp: _timestamp, ...subject } = metadata
  return { ...bill, metadata: subject }
}

/** Runs a program in `stage` and returns its output. */
function run(program, args) {
  const { status, stdout, error } = spawnSync(program, args, {
    cwd: stage,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    timeout: timeoutMs,
    maxBuffer: 64 * 1024 * 1024,
    shell: process.platform === 'win32' && program === 'npm',
  })
  if (status === 0) return stdout
  process.stdout.write(stdout ?? '')
  throw new Error(`${program} ${args.join(' ')} failed`, { cause: error })
}

function readJson(name) {
  return JSON.parse(readFileSync(join(root, name), 'utf8'))
}

function writeJson(value) {
  return `${JSON.stringify(value, null, 2)}\n`
}
