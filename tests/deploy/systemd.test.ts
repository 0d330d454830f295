import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deploy, hasTool, run } from './tools.ts'

const unit = readFileSync(join(deploy, 'systemd', 'svc-router.service'), 'utf8')
/** systemd's scale goes from 0 to 100, in tenths. A service without any hardening has 92. */
const highestExposure = 15

describe.skipIf(!hasTool('systemd-analyze', ['--version']))('the systemd unit', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-unit-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** Writes the unit with a program that exists on this machine. */
  function install(text: string): string {
    const path = join(folder, 'svc-router.service')
    writeFileSync(path, text.replace('/opt/svc-router/bin/svc-router', process.execPath))
    return path
  }

  test('contains no mistake that systemd finds', () => {
    const verify = (text: string) => run('systemd-analyze', ['verify', '--man=no', install(text)])
    expect(verify(unit)).toEqual({ status: 0, output: '' })
    expect(verify(unit.replace('ProtectHome=', 'ProtectHoem=')).output).toContain('ProtectHoem')
  })

  test('is hardened', () => {
    const rate = (text: string) =>
      run('systemd-analyze', ['security', '--offline=true', `--threshold=${highestExposure}`, install(text)])
    expect(rate(unit)).toMatchObject({ status: 0 })
    expect(rate(unit.replace('ProtectSystem=strict', '').replace(/^SystemCallFilter=.*$/gm, '')).status).not.toBe(0)
  })
})
