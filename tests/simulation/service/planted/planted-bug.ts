import { readFileSync } from 'node:fs'

/** One small change of a source file. `find` must occur exactly once. */
interface Patch {
  /** Below `src/`. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** A bug that the simulation must notice. */
export interface PlantedBug {
  readonly name: string
  /** What goes wrong, and where it went wrong before. */
  readonly story: string
  readonly patches: readonly Patch[]
}

/** Applies the patches of one file to its text. @throws Error if one does not apply exactly once */
function patched(text: string, patches: readonly Patch[]): string {
  let result = text
  for (const { file, find, replace } of patches) {
    const count = result.split(find).length - 1
    if (count !== 1) throw new Error(`the patch of ${file} applies ${count} times: ${find}`)
    result = result.replace(find, () => replace)
  }
  return result
}

/** The text of a file of `src/` with a bug. @throws Error as `patched` */
export function readPatched({ patches }: PlantedBug, file: string): string {
  const text = readFileSync(new URL(`../../../../src/${file}`, import.meta.url), 'utf8')
  return patched(
    text,
    patches.filter((patch) => patch.file === file),
  )
}
