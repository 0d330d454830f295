// npm run package [-- FOLDER]: the published package svc-router-VERSION.tgz and its bill of materials (CycloneDX), in dist or
// the folder that is named. The same commit gives the same bytes with the same versions of Node and npm.
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
import { join, resolve } from 'node:path'
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

const manifest = readJson('package.json')
const { name, version, description, license, repository, bin, type, dependencies } = manifest
const files = [...manifest.files, 'CHANGELOG.md', 'SECURITY.md', 'npm-shrinkwrap.json']
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
  engines: { node: publishedNode },
}

const temporary = mkdtempSync(join(tmpdir(), 'svc-router-package-'))
// `npm sbom` names the program after its folder.
const stage = join(temporary, manifest.name)
try {
  writeStage()
  mkdirSync(target, { recursive: true })
  run('npm', ['pack', '--silent', '--ignore-scripts', '--offline', '--pack-destination', target])
  const path = join(target, `${manifest.name}-${manifest.version}`)
  writeFileSync(`${path}.cdx.json`, writeJson(billOfMaterials()))
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
  writeFileSync(join(stage, 'npm-shrinkwrap.json'), writeJson(shrinkwrap()))
  // npm copies modes, and those of a checkout depend on the umask of its owner.
  for (const name of readdirSync(stage, { recursive: true, encoding: 'utf8' })) {
    const path = join(stage, name)
    chmodSync(path, statSync(path).isDirectory() || executables.includes(name) ? 0o755 : 0o644)
  }
}

/**
 * The lock file without the packages that only a checkout needs: an installed package uses exactly the tested versions, and npm checks
 * their hashes.
 */
function shrinkwrap() {
  const lock = readJson('package-lock.json')
  const left = new Set(['', ...Object.keys(manifest.optionalDependencies).map((key) => `node_modules/${key}`)])
  const packages = Object.entries(lock.packages).filter(
    ([path, { dev, devOptional }]) => dev !== true && devOptional !== true && !left.has(path),
  )
  return { ...lock, packages: Object.fromEntries([['', published], ...packages]) }
}

/** What npm reports, without the time and the random number, which would make each build differ. */
function billOfMaterials() {
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
