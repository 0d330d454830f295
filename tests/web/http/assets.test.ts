import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const web = join(import.meta.dirname, '..', '..', '..', 'src', 'web')
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
