import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page, Response } from 'playwright-core'
// npm run lighthouse [PART OF A PAGE'S NAME]: runs Lighthouse on every page of the real service, with a simulated phone
// on slow 4G. Prints a table of scores, and exits with 1 if a page misses a goal. Installs Lighthouse into
// .cache/lighthouse.
import { freePort } from '../src/runtime/free-port.ts'
import { Service } from '../tests/service.ts'
import { startChromium } from '../tests/web/chromium.ts'
import { everyPage, signInAs } from '../tests/web/every-page.ts'
import { fillAccount } from '../tests/web/fill-account.ts'
import { beholders } from '../tests/web/page-state.ts'

const goals = { performance: 98, accessibility: 100, 'best-practices': 100, seo: 100 } as const
type Category = keyof typeof goals
const categories = Object.keys(goals) as Category[]
/** If the first performance score of a page misses the goal, measure this often and use the median. Odd. */
const tries = 3
const installWithinMs = 600_000
const folder = join(import.meta.dirname, '..', '.cache', 'lighthouse')

/** The parts of a report that this script reads. */
interface Report {
  readonly categories: Readonly<
    Record<string, { readonly score: number | null; readonly auditRefs: readonly { id: string; weight: number }[] }>
  >
  readonly audits: Readonly<Record<string, { readonly title: string; readonly score: number | null }>>
}
type Lighthouse = (
  url: string,
  flags: Readonly<Record<string, unknown>>,
) => Promise<{ readonly lhr: Report } | undefined>

interface Row {
  readonly name: string
  readonly scores: Readonly<Partial<Record<Category, number>>>
  /** The names of the failed audits. */
  readonly lacks: readonly string[]
}

const wanted = process.argv[2] ?? ''
const lighthouse = await install()
// Chromium accepts commands there.
const port = await freePort()
const service = await Service.start()
const browser = await startChromium([`--remote-debugging-port=${port}`])
try {
  await fillAccount(service)
  const rows: Row[] = []
  for (const as of beholders) rows.push(...(await measureAll(browser, as)))
  print(rows)
  if (rows.length === 0) throw new Error(`no page is called ${wanted}`)
  if (rows.some((row) => missed(row).length > 0)) process.exitCode = 1
} finally {
  await browser.close()
  await service.stop()
}

/** Measures every distinct URL of the page states. Private pages need no score for search engines. */
async function measureAll(driver: Browser, as: (typeof beholders)[number]): Promise<Row[]> {
  const origin = service.config.appUrl
  const context = await driver.newContext()
  const page = await context.newPage()
  await signInAs(as, page, service, origin)
  const [cookie] = await context.cookies()
  const seen = new Set<string>()
  const rows: Row[] = []
  for (const state of everyPage.filter((each) => each.as === as && each.name.includes(wanted))) {
    const url = await addressOf(state, page, origin)
    if (url === undefined || seen.has(url)) continue
    seen.add(url)
    const extraHeaders = cookie === undefined ? {} : { Cookie: `${cookie.name}=${cookie.value}` }
    const row = await measure(state.name, url, extraHeaders, as !== 'nobody')
    process.stderr.write(`${rows.length + 1} ${line(row)}\n`)
    rows.push(row)
  }
  await context.close()
  return rows
}

/**
 * The URL of a page state. Undefined if only a form leads there, because Lighthouse cannot submit forms, or if the page
 * is an error.
 */
async function addressOf(state: (typeof everyPage)[number], page: Page, origin: string): Promise<string | undefined> {
  let isPlain = false
  const note = (response: Response): void => {
    const request = response.request()
    if (request.isNavigationRequest()) isPlain = request.method() === 'GET' && response.status() === 200
  }
  page.on('response', note)
  await state.show(page, origin)
  page.off('response', note)
  return isPlain ? page.url().split('#')[0]! : undefined
}

async function measure(
  name: string,
  url: string,
  extraHeaders: Readonly<Record<string, string>>,
  isPrivate: boolean,
): Promise<Row> {
  const onlyCategories = categories.filter((category) => !(isPrivate && category === 'seo'))
  const reports: Report[] = []
  while (reports.length < tries) {
    const result = await lighthouse(url, {
      port,
      extraHeaders,
      ignoreStatusCode: true,
      onlyCategories,
      logLevel: 'silent',
      output: 'json',
    })
    if (result === undefined) throw new Error(`Lighthouse returned no report for ${url}`)
    reports.push(result.lhr)
    if (reports.length === 1 && scoreOf(result.lhr, 'performance') >= goals.performance) break
  }
  reports.sort((a, b) => scoreOf(a, 'performance') - scoreOf(b, 'performance'))
  const median = reports[Math.floor(reports.length / 2)]!
  const scores = Object.fromEntries(onlyCategories.map((category) => [category, scoreOf(median, category)]))
  const lacks = onlyCategories
    .filter((category) => scoreOf(median, category) < goals[category])
    .flatMap((category) => median.categories[category]!.auditRefs.filter(({ weight }) => weight > 0))
    .filter(({ id }) => (median.audits[id]?.score ?? 1) < 0.9)
    .map(({ id }) => id)
  return { name, scores, lacks }
}

function scoreOf(report: Report, category: Category): number {
  return Math.round((report.categories[category]?.score ?? 0) * 100)
}

function missed({ scores }: Row): Category[] {
  return categories.filter((category) => (scores[category] ?? 100) < goals[category])
}

function print(rows: readonly Row[]): void {
  console.log(`${'page'.padEnd(24)}${categories.map((category) => category.padStart(16)).join('')}`)
  for (const row of rows) console.log(line(row))
  console.log(`${'goal'.padEnd(24)}${categories.map((category) => String(goals[category]).padStart(16)).join('')}`)
}

function line(row: Row): string {
  const figures = categories.map((category) => String(row.scores[category] ?? '–').padStart(16))
  return `${row.name.padEnd(24)}${figures.join('')}${row.lacks.length === 0 ? '' : `  ${row.lacks.join(', ')}`}`
}

/** Returns the pinned Lighthouse, installed once with the versions of its lock file and without install scripts. */
async function install(): Promise<Lighthouse> {
  const lock = join(import.meta.dirname, 'lighthouse', 'package-lock.json')
  const installed = join(folder, 'package-lock.json')
  // npm writes this file last, so a folder without it is incomplete.
  const finished = join(folder, 'node_modules', '.package-lock.json')
  if (!existsSync(finished) || readFileSync(installed, 'utf8') !== readFileSync(lock, 'utf8')) {
    process.stderr.write('installing Lighthouse into .cache/lighthouse, once …\n')
    mkdirSync(folder, { recursive: true })
    copyFileSync(join(import.meta.dirname, 'lighthouse', 'package.json'), join(folder, 'package.json'))
    copyFileSync(lock, installed)
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const { status } = spawnSync('npm', ['ci', ...flags], { cwd: folder, stdio: 'inherit', timeout: installWithinMs })
    if (status !== 0) throw new Error('Lighthouse could not be installed')
  }
  const path = join(folder, 'node_modules', 'lighthouse', 'core', 'index.js')
  const loaded = (await import(pathToFileURL(path).href)) as { readonly default: Lighthouse }
  return loaded.default
}
