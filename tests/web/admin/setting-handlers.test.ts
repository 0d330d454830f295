import { expect, test } from 'vitest'
import { noSettings } from '../../../src/domain/declared.ts'
import type { AdminCall } from '../../../src/web/admin/admin-call.ts'
import { settingHandlers } from '../../../src/web/admin/setting-handlers.ts'

test('a list of settings reads no accounts and keys, which can be a million', async () => {
  const store = { listSettings: async () => [], listBackendControls: async () => [] }
  const call = { admin: { configured: noSettings }, control: { store } } as unknown as AdminCall
  expect(await settingHandlers.listPlans(call)).toEqual({ object: 'list', data: [], has_more: false })
})
