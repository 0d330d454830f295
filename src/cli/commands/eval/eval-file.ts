import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import { journalOf, readJournal, writeHead, type EvaluationHead } from '../../../eval/journal-lines.ts'
import type { Journal, Kept } from '../../../eval/ports.ts'
import { createFolder } from '../../../runtime/create-folder.ts'
import { SetupError } from '../../../runtime/setup-error.ts'

const folderName = 'eval'
/** Enough for several thousand calls with long answers. */
const maxFileBytes = 512 * 1024 * 1024
const maxFiles = 1_000

/** The journal file of an evaluation, written call by call. */
export interface EvalFile extends Disposable {
  readonly path: string
  readonly journal: Journal
}

/** Reads an earlier evaluation. @throws SetupError if the file does not contain one */
export function readEvalFile(path: string): { readonly head: EvaluationHead; readonly kept: Kept } {
  const fix = 'use the file that the interrupted evaluation printed, or start over without --resume'
  if (!existsSync(path)) throw new SetupError(`there is no file ${path}`, fix)
  if (statSync(path).size > maxFileBytes) throw new SetupError(`${path} is too large to be an evaluation file`, fix)
  const read = readJournal(readFileSync(path, 'utf8'))
  if ('problem' in read) throw new SetupError(`${path} cannot be resumed: ${read.problem}`, fix)
  return read
}

/** Creates a file in the data folder that only this user can read. @throws the system error */
export function createEvalFile(dataDir: string, head: EvaluationHead): EvalFile {
  const folder = join(dataDir, folderName)
  createFolder(folder)
  for (let count = 1; count <= maxFiles; count++) {
    const path = join(folder, `seed-${head.seed}${count === 1 ? '' : `-${count}`}.jsonl`)
    if (existsSync(path)) continue
    const file = open(path, 'ax')
    file.append(writeHead(head))
    return file
  }
  throw new SetupError(`${folder} has too many files with the same seed`, 'delete the ones that you no longer need')
}

/** Appends to an existing file. @throws the system error */
export function continueEvalFile(path: string): EvalFile {
  chmodSync(path, 0o600)
  // Drops an incomplete last line; the next line replaces it.
  const whole = readFileSync(path).lastIndexOf('\n') + 1
  if (whole > 0) truncateSync(path, whole)
  return open(path, 'a')
}

function open(path: string, flags: 'a' | 'ax'): EvalFile & { append(line: string): void } {
  const handle = openSync(path, flags, 0o600)
  const append = (line: string): void => appendFileSync(handle, `${line}\n`)
  return { path, append, journal: journalOf(append), [Symbol.dispose]: () => closeSync(handle) }
}
