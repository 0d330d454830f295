import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const everyRule = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** The rules whose result depends on colors. */
const colorRules = ['color-contrast', 'link-in-text-block']
// Omit passed rules: axe would describe each of their elements, which takes most of its time.
const everyOtherRule: RunOptions = {
  runOnly: { type: 'tag', values: everyRule },
  rules: Object.fromEntries(colorRules.map((rule) => [rule, { enabled: false }])),
  resultTypes: ['violations'],
  selectors: false,
}
/** The elements that pass are needed here. */
const onlyColorRules: RunOptions = {
  runOnly: { type: 'rule', values: colorRules },
  resultTypes: ['violations', 'passes'],
  selectors: false,
  elementRef: true,
}

/** Runs in the page: a violated rule, with the violating elements. */
const describe = `({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | ')`

/**
 * Runs in the page: applies the rules about colors to the visible elements whose colors no earlier page had. The colors of
 * an element are its key: those of its text, of the nearest opaque background, and of everything translucent between and
 * above. A positioned element has no key, because its background need not be that of an ancestor. A key counts as judged
 * only once axe has accepted an element that has it, so axe looks again at elements about which it could not decide.
 */
const judgeColors = `(async (judged, options) => {
  const known = new Set(judged)
  const plain = '1 none normal none none'
  const backdrops = new Map([[null, { background: '', effects: '' }]])
  const backdropOf = (element) => {
    const found = backdrops.get(element)
    if (found !== undefined) return found
    const { backgroundColor, backgroundImage, opacity, filter, mixBlendMode, clipPath, transform, position } = getComputedStyle(element)
    const own = [opacity, filter, mixBlendMode, clipPath, transform].join(' ')
    const above = backdropOf(element.parentElement)
    const isOpaque = backgroundColor.startsWith('rgb(') && backgroundImage === 'none'
    const isClear = backgroundColor === 'rgba(0, 0, 0, 0)' && backgroundImage === 'none'
    const backdrop = {
      isPlaced: above.isPlaced || !['static', 'relative'].includes(position),
      background: isClear ? above.background : (isOpaque ? '' : above.background) + backgroundColor + backgroundImage,
      effects: own === plain ? above.effects : above.effects + '/' + own,
    }
    backdrops.set(element, backdrop)
    return backdrop
  }
  const keyOf = (element) => {
    const { isPlaced, background, effects } = backdropOf(element)
    if (isPlaced) return undefined
    const { color, fontSize, fontWeight, textShadow, webkitTextFillColor } = getComputedStyle(element)
    return [color, fontSize, fontWeight, textShadow, webkitTextFillColor, background, effects].join(' ')
  }
  // Text for screen readers only, and links that appear with the focus, have no visible colors.
  const isSeen = (element) => {
    const { width, height, right, bottom } = element.getBoundingClientRect()
    return element.checkVisibility() && (width > 1 || height > 1) && right + scrollX > 0 && bottom + scrollY > 0
  }
  const ownText = ({ childNodes }) => [...childNodes].flatMap((node) => (node.nodeType === 3 ? [node.data.trim()] : [])).join('')
  const isField = (element) => element.matches('select, textarea, input:not([type=checkbox], [type=radio], [type=hidden])')
  // Every underlined link passes the rule about links in text, which needs more text around a link than in it.
  const blockOf = (element) => (getComputedStyle(element).display === 'inline' ? blockOf(element.parentElement) : element)
  const isPlainInText = (element) => {
    if (!element.matches('a[href]') || getComputedStyle(element).textDecorationLine !== 'none') return false
    // Blocks, items of flexible boxes among them, are not in text.
    if (getComputedStyle(element).display !== 'inline') return false
    const block = blockOf(element.parentElement)
    const around = [block, ...block.querySelectorAll(':not(a, a *)')].map(ownText).join('')
    return around.length > element.textContent.trim().length
  }
  const include = [...document.querySelectorAll('body, body *')].filter((element) =>
    isSeen(element) &&
    (((ownText(element) !== '' || isField(element)) && !known.has(keyOf(element))) || isPlainInText(element)))
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches
  if (include.length === 0) return { isDark, violations: [], accepted: [] }
  const { violations, passes } = await axe.run({ include }, options)
  return {
    isDark,
    violations: violations.map(${describe}),
    accepted: passes.filter(({ id }) => id === 'color-contrast').flatMap(({ nodes }) => nodes.map(({ element }) => keyOf(element)))
      .filter((key) => key !== undefined),
  }
})`

/** Runs in the page: loads axe if `prepare` has made that possible. Returns whether it is there. */
const load = `'axe' in globalThis || (globalThis.loadAxe?.(), 'axe' in globalThis)`

/**
 * Loads axe into a page, and adds a function to the page's later documents that loads it there. Sending its 650 kB for each
 * document would take most of the time of loading it.
 */
async function prepare(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const define = `globalThis.loadAxe = () => {${source}}`
  await session.send('Page.enable')
  await session.send('Page.addScriptToEvaluateOnNewDocument', { source: define })
  await session.send('Runtime.evaluate', { expression: `${define}; loadAxe()` })
}

interface Judgment {
  readonly isDark: boolean
  readonly violations: readonly string[]
  readonly accepted: readonly string[]
}

/**
 * The accessibility rules that a page violates in its current state, with the violating elements. The rules about colors
 * apply in both themes, to the elements whose colors are not in `judged`, which then includes those of this page. The
 * theme changes, because a change back would draw the page once more.
 */
export async function violations(page: Page, judged: Set<string>): Promise<string[]> {
  if (!(await page.evaluate<boolean>(load))) await prepare(page)
  const found = await page.evaluate<
    string[]
  >(`axe.run(document, ${JSON.stringify(everyOtherRule)}).then(({ violations }) =>
    violations.map(${describe}))`)
  for (let theme = 0; theme < 2; theme++) {
    const judgment = await page.evaluate<Judgment>(
      `${judgeColors}(${JSON.stringify([...judged])}, ${JSON.stringify(onlyColorRules)})`,
    )
    for (const key of judgment.accepted) judged.add(key)
    found.push(...judgment.violations.map((each) => (judgment.isDark ? `dark: ${each}` : each)))
    if (theme === 0) await page.emulateMedia({ colorScheme: judgment.isDark ? 'light' : 'dark' })
  }
  return found
}
