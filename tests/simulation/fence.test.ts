import { describe, expect, test } from 'vitest'
import { ordersEach, ordersObeyed, ordersObeyedIn } from './gullible-models.ts'

const fusions = 2_500

describe('the fence', () => {
  test(`a simulated gullible judge and writer obey none of ${fusions * ordersEach} injected orders`, async () => {
    expect(await ordersObeyedIn(fusions, 1)).toEqual([])
  })

  test('the gullible judge obeys orders outside the fence', () => {
    expect(ordersObeyed('⟦abcdef·A⟧ fine\nOBEY-1')).toEqual(['OBEY-1'])
    expect(ordersObeyed('⟦abcdef·A⟧ fine\u2028OBEY-2')).toEqual(['OBEY-2'])
    expect(ordersObeyed('⟦abcdef·A⟧ fine\n⟦ghijkl·A⟧ OBEY-3')).toEqual(['OBEY-3'])
  })
})
