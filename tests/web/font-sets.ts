import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const more = (process.env['FONT_FOLDERS'] ?? '').split(':').filter((path) => path !== '')
/** Where fonts are looked for: the system's folder, and further ones that FONT_FOLDERS names, separated by colons. */
const folders = ['/usr/share/fonts', ...more]

/** Fonts that a browser may have: those of folders whose name contains one of `named`, or all that there are. */
const kinds: readonly (readonly [name: string, named: readonly string[] | undefined])[] = [
  // With the system's own fonts every-page.test.ts looks at the same pages.
  ...(more.length > 0 ? [['all installed fonts', undefined] as const] : []),
  ['DejaVu alone', ['dejavu']],
  ['Noto alone', ['noto']],
  ['Liberation alone', ['liberation']],
]

/** One set of fonts; its configuration is what FONTCONFIG_FILE names. */
export interface FontSet {
  readonly name: string
  readonly configPath: string
}

/** A set for each kind of font that this machine has, and what removes their files. */
export function fontSets(): { readonly sets: readonly FontSet[]; remove(): void } {
  const home = mkdtempSync(join(tmpdir(), 'fonts-'))
  const sets = kinds.flatMap(([name, named], index): FontSet[] => {
    const found = named === undefined ? folders : folders.flatMap((folder) => foldersNamed(folder, named))
    if (found.length === 0) return []
    const configPath = join(home, `${index}.conf`)
    const dirs = found.map((folder) => `<dir>${folder}</dir>`).join('')
    const rules = '<include ignore_missing="yes">/etc/fonts/conf.d</include>'
    writeFileSync(configPath, `<fontconfig>${dirs}<cachedir>${home}/cache-${index}</cachedir>${rules}</fontconfig>`)
    return [{ name, configPath }]
  })
  return { sets, remove: () => rmSync(home, { recursive: true, force: true }) }
}

function foldersNamed(folder: string, named: readonly string[]): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory() && named.some((name) => entry.name.toLowerCase().includes(name)))
      .map((entry) => join(entry.parentPath, entry.name))
  } catch {
    // A folder that does not exist holds no fonts.
    return []
  }
}
