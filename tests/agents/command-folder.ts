import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { quoteForShell } from '../../src/runtime/quote-for-shell.ts'

/** A folder for `PATH` with commands under their usual names. */
export class CommandFolder implements Disposable {
  readonly folder: string

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'svc-router-bin-'))
  }

  /** Adds a command that runs `program`: a program, then arguments that precede those of the caller. */
  add(name: string, ...program: readonly string[]): void {
    const text = `#!/bin/sh\nexec ${program.map(quoteForShell).join(' ')} "$@"\n`
    writeFileSync(join(this.folder, name), text, { mode: 0o755 })
  }

  /** `PATH` with this folder first. */
  get path(): string {
    return `${this.folder}${delimiter}${process.env['PATH']}`
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
