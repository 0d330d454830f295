import { cpSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const src = join(import.meta.dirname, '..', '..', '..', 'src')
const web = join(src, 'web')
const read = (pattern: string): string =>
  globSync(pattern, { cwd: web })
    .map((name) => readFileSync(join(web, name), 'utf8'))
    .join('\n')

test('every class that a style sheet selects is used by a page or a script', () => {
  const styles = read('assets/*.css').replaceAll(/\/\*.*?\*\//gs, '')
  const selectors = Array.from(styles.matchAll(/([^{}]*)\{/g), ([, selector]) => selector!).join('\n')
  const classes = new Set(Array.from(selectors.matchAll(/\.([a-z][\w-]*)/gi), ([, name]) => name!))
  const markup = read('**/*.{ts,js}')
  const unused = [...classes].filter((name) => !new RegExp(String.raw`(?<![\w-])${name}(?![\w-])`).test(markup))
  expect(classes.size).toBeGreaterThan(50)
  expect(unused).toEqual([])
})

test('static files that could not be read are read again at the next call', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-assets-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const path of ['web/assets', 'web/http/assets.ts', 'runtime/etag.ts'])
    cpSync(join(src, path), join(folder, path), { recursive: true })
  const icon = join(folder, 'web', 'assets', 'icon.svg')
  renameSync(icon, `${icon}.away`)
  const url = pathToFileURL(join(folder, 'web', 'http', 'assets.ts')).href
  const { loadAssets, assetUrl } = (await import(url)) as typeof import('../../../src/web/http/assets.ts')
  expect(() => loadAssets()).toThrow('ENOENT')
  renameSync(`${icon}.away`, icon)
  expect(loadAssets().byName.size).toBeGreaterThan(10)
  expect(assetUrl('icon.svg')).toMatch(/^\/assets\/icon\.[\da-f]{16}\.svg$/)
})
