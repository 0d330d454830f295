import type { Response } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { isLongRun } from '../long-run.ts'
import { Service } from '../service.ts'
import { hasChromium, lendPage } from '../web/chromium.ts'
import { byName, everyPage, signInAs } from '../web/every-page.ts'
import { fillAccount } from '../web/fill-account.ts'
import { maxPageBytes } from '../web/max-page-bytes.ts'
import { type PageState, tooWide } from '../web/page-state.ts'
import { violations } from './axe.ts'
import { faultsByKeyboard } from './keyboard.ts'

/** The width of a desktop of 1280 pixels at a zoom of 200 %. */
const zoomed = { width: 640, height: 400 }
const narrow = { width: 320, height: 640 }
/** Console messages about answers that a page provokes. Any other message is a fault. */
const provoked = /status of 4(00|04|10|22)/

/**
 * The directives in the policy of every answer, and the only sources that they may name in addition to our own origins.
 */
const directives = [
  "default-src 'none'",
  'style-src',
  'script-src',
  'img-src',
  'connect-src',
  'form-action',
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
]
const harmless = ["'none'", "'self'", "'script'"]

/** Runs in the page: finds what a document must not contain, with the elements. */
export const faultsInDocument = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)]
  const found = (fault, elements) => elements.map((element) => fault + ': ' + element.outerHTML.slice(0, 120))
  const ids = all('[id]').map(({ id }) => id)
  const names = (element, attribute) => (element.getAttribute(attribute) ?? '').split(' ').filter((id) => id !== '')
  return [
    ...(all('h1').length === 1 ? [] : ['headings of the first level: ' + all('h1').length]),
    ...(/^.+ · svc-router( console)?$/.test(document.title) ? [] : ['title: ' + document.title]),
    ...(document.documentElement.lang === 'en' ? [] : ['lang']),
    ...(document.compatMode === 'CSS1Compat' ? [] : ['quirks']),
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => 'twice: ' + id),
    ...found('inline style', all('[style], style')),
    ...found('inline script', all('script:not([src])')),
    ...found('handler', all('*').filter((element) => element.getAttributeNames().some((name) => name.startsWith('on')))),
    ...found('label of nothing', all('label[for]').filter((label) => label.control === null)),
    ...['aria-describedby', 'aria-labelledby', 'aria-controls'].flatMap((attribute) =>
      found(attribute, all('[' + attribute + ']').filter((each) => names(each, attribute).some((id) => !ids.includes(id))))),
    ...found('link to nothing', all('a[href^="#"]').filter((link) => !ids.includes(link.hash.slice(1)))),
    ...found('form within a form', all('form form')),
    ...found('button of no form', all('button:not([type=button])').filter((button) => button.form === null)),
    ...found('picture without words', all('img:not([alt])')),
  ]
})()`

let service: Service

/** A suite that checks every page for one kind of visitor. Each is in its own file, so that they run in parallel. */
export function testEveryPageOf(as: PageState['as']): void {
  const suite = hasChromium('What holds for every page') ? describe : describe.skip

  suite(`every page: ${as}`, () => {
    beforeAll(async () => {
      service = await Service.start()
      await fillAccount(service)
    })
    afterAll(() => service.stop())

    test('is small, valid, accessible, complete at 320 pixels and at 200%, usable by Tab alone, and allowed by the strict policy', async () => {
      const page = await lendPage({ viewport: narrow })
      const context = page.context()
      onTestFinished(() => context.close())
      const origin = byName(service)
      const told: Response[] = []
      const judged = new Set<string>()
      const complaints: string[] = []
      page.on('response', (response) => void told.push(response))
      page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())))
      page.on('pageerror', (error) => void complaints.push(error.message))
      await signInAs(as, page, service, origin)
      for (const state of everyPage.filter((each) => each.as === as)) {
        told.length = 0
        if (isLongRun) judged.clear()
        await state.show(page, origin)
        expect(await page.evaluate(faultsInDocument), state.name).toEqual([])
        expect(await tooLong(told), state.name).toEqual([])
        expect(await carelessly(told), state.name).toEqual([])
        expect(await page.evaluate(tooWide), `${state.name} at 320 px`).toEqual([])
        expect(await violations(page, judged), state.name).toEqual([])
        await page.setViewportSize(zoomed)
        expect(await page.evaluate(tooWide), `${state.name} at 200 %`).toEqual([])
        expect(await faultsByKeyboard(page), `${state.name} by keyboard`).toEqual([])
        // The page of the first key signed in, so clear the session.
        if (as === 'nobody') expect(await context.cookies(), `${state.name} sets no cookie`).toEqual([])
        await page.setViewportSize(narrow)
      }
      expect(complaints.filter((complaint) => !provoked.test(complaint))).toEqual([])
    }, 300_000)
  })
}

/** The last document if it has too many bytes; pages are not compressed here. None if the state shows the previous document. */
async function tooLong(answers: readonly Response[]): Promise<string[]> {
  const document = answers.findLast((answer) => answer.request().isNavigationRequest() && answer.status() !== 303)
  if (document === undefined) return []
  const { byteLength } = await document.body()
  return byteLength > maxPageBytes(new URL(document.url()).pathname) ? [`${document.url()}: ${byteLength} bytes`] : []
}

/** Answers from other origins, or with a policy that allows more than our own files. */
async function carelessly(answers: readonly Response[]): Promise<string[]> {
  const found: string[] = []
  const { appUrl } = service.config
  for (const answer of answers) {
    if (new URL(answer.url()).port !== new URL(appUrl).port) found.push(`from elsewhere: ${answer.url()}`)
    const policy = (await answer.allHeaders())['content-security-policy'] ?? ''
    const parts = policy.split('; ')
    for (const directive of directives)
      if (!parts.some((part) => `${part} `.startsWith(`${directive} `))) found.push(`${answer.url()}: no ${directive}`)
    const sources = parts.flatMap((part) => part.split(' ').slice(1))
    const strange = sources.filter((source) => !harmless.includes(source) && source !== service.origin)
    if (strange.length > 0) found.push(`${answer.url()}: ${strange.join(' ')}`)
  }
  return found
}
