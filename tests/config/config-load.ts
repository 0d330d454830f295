import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/config/config.ts'
import { loadConfig, type ConfigSource } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problems.ts'
import { systemRandom } from '../../src/runtime/random.ts'

/** Not a real secret. */
export const madeUpPepper = 'made-up-pepper-of-the-tests'
export const madeUpSealingKey = Buffer.alloc(32, 7).toString('base64')

/** Runs a function with a temporary folder. */
export function inFolder<Value>(run: (folder: string) => Value): Value {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-config-'))
  try {
    return run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Loads a configuration text. By default, the local secrets are not stored. */
export function loadText(text: string, options: Partial<ConfigSource> = {}): Config {
  return inFolder((folder) => {
    const path = join(folder, 'svc-router.yaml')
    writeFileSync(path, text)
    return loadConfig({
      path,
      explicit: true,
      overrides: {},
      env: {},
      random: systemRandom(),
      localSecrets: 'pretend',
      ...options,
    })
  })
}

/** Returns the error of an invalid configuration text. @throws if the text is valid */
export function errorOf(text: string, options: Partial<ConfigSource> = {}): ConfigError {
  try {
    loadText(text, options)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('the configuration was accepted')
}
