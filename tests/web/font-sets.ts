import { type Dirent, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

const more = (process.env['FONT_FOLDERS'] ?? '').split(':').filter((path) => path !== '')
/** The font folders: that of the system, and those in `FONT_FOLDERS`, separated by colons. */
const folders = ['/usr/share/fonts', ...more]

/** The default font folder of browsers. */
const systemFolders = [
  '/usr/share/fonts',
  '/usr/local/share/fonts',
  join(homedir(), '.fonts'),
  join(homedir(), '.local/share/fonts'),
]

/** The fonts of one set: those in folders whose name contains one of `named`, or all fonts. */
const kinds: readonly (readonly [name: string, named: readonly string[] | undefined])[] = [
  ...(more.length > 0 ? [['all installed fonts', undefined] as const] : []),
  ['DejaVu alone', ['dejavu']],
  ['Noto alone', ['noto']],
  ['Liberation alone', ['liberation']],
]

/** One set of fonts. `FONTCONFIG_FILE` must name its configuration. */
export interface FontSet {
  readonly name: string
  readonly configPath: string
}

/** A set for each kind of font on this machine, and a function that deletes their files. */
export function fontSets(): { readonly sets: readonly FontSet[]; remove(): void } {
  const home = mkdtempSync(join(tmpdir(), 'fonts-'))
  const sets = kinds.flatMap(([name, named], index): FontSet[] => {
    const found = named === undefined ? folders : folders.flatMap((folder) => foldersNamed(folder, named))
    // every-page.test.ts tests the same pages with the fonts of the system.
    if (found.length === 0 || isWholeSystem(found)) return []
    const configPath = join(home, `${index}.conf`)
    const dirs = found.map((folder) => `<dir>${folder}</dir>`).join('')
    const rules = '<include ignore_missing="yes">/etc/fonts/conf.d</include>'
    writeFileSync(configPath, `<fontconfig>${dirs}<cachedir>${home}/cache-${index}</cachedir>${rules}</fontconfig>`)
    return [{ name, configPath }]
  })
  return { sets, remove: () => rmSync(home, { recursive: true, force: true }) }
}

/** Whether these folders contain every font of the system. */
function isWholeSystem(found: readonly string[]): boolean {
  const all = systemFolders.flatMap(filesBelow)
  return all.length === new Set(found.flatMap(filesBelow)).size
}

function filesBelow(folder: string): string[] {
  return entriesBelow(folder)
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
}

function foldersNamed(folder: string, named: readonly string[]): string[] {
  return entriesBelow(folder)
    .filter((entry) => entry.isDirectory() && named.some((name) => entry.name.toLowerCase().includes(name)))
    .map((entry) => join(entry.parentPath, entry.name))
}

function entriesBelow(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
  } catch {
    // A folder that does not exist contains no fonts.
    return []
  }
}
