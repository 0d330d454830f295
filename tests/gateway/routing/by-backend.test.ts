import { expect, test } from 'vitest'
import { ByBackend } from '../../../src/gateway/routing/by-backend.ts'

const own = (id: string) => ({ id, owner: 'acc' })

test('backends of accounts evict only one another, those called longest ago first', () => {
  const known = new ByBackend<number>()
  known.add({ id: 'shared' }, 1)
  known.add(own('busy'), 2)
  known.add(own('read'), 3)
  for (let index = 0; index < 10_000; index++) {
    known.add(own(`own-${index}`), index)
    if (index % 1_000 === 0) expect(known.getForCall(own('busy'))).toBe(2)
    known.get('read')
  }
  expect(known.getForCall({ id: 'shared' })).toBe(1)
  expect(['shared', 'busy', 'read', 'own-0', 'own-1'].map((id) => known.get(id))).toEqual([
    1,
    2,
    undefined,
    undefined,
    1,
  ])
  known.delete('shared')
  known.delete('busy')
  expect([known.get('shared'), known.get('busy')]).toEqual([undefined, undefined])
})
