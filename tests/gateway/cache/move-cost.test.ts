import { describe, expect, test } from 'vitest'
import { affordableWaitSeconds, moveCost, type Place, type Turn } from '../../../src/gateway/cache/move-cost.ts'

/** Claude Opus 5: the example of decision 64. */
const opus = { input: 5, output: 25, cacheRead: 0.5 }
const turn: Turn = { promptTokens: 150_000, turns: 5, comparesPrices: true }
const place = (changes: Partial<Place> = {}): Place => ({
  price: opus,
  writeFactor: 1.25,
  warmTokens: 0,
  seconds: 1,
  failureRate: 0,
  ...changes,
})
const warm = place({ warmTokens: 150_000 })

describe('leaving a backend that holds the cache', () => {
  test('costs the difference between writing and reading: 86 cents for 150,000 tokens of Opus', () => {
    const cost = moveCost(turn, warm, place())
    expect(cost.refillUsd).toBeCloseTo(0.8625, 6)
    expect(cost).toMatchObject({ moves: false, waitUsd: 0, failureUsd: 0 })
    expect(cost.laterUsd).toBeCloseTo(0, 9)
  })

  test('is worth it after 43 seconds', () => {
    expect(affordableWaitSeconds(turn, warm, place())).toBeCloseTo(43.1, 1)
    expect(moveCost(turn, { ...warm, seconds: 43 }, place()).moves).toBe(false)
    expect(moveCost(turn, { ...warm, seconds: 45 }, place()).moves).toBe(true)
  })

  test('costs nothing if the other backend is as warm', () => {
    expect(affordableWaitSeconds(turn, warm, warm)).toBe(0)
    expect(moveCost(turn, { ...warm, seconds: 2 }, warm).moves).toBe(true)
  })

  test('is worth it for a much lower price over enough turns, if prices decide', () => {
    const cheap = place({ price: { input: 0.5, output: 2.5, cacheRead: 0.05 } })
    expect(moveCost(turn, warm, cheap).moves).toBe(true)
    expect(moveCost({ ...turn, comparesPrices: false }, warm, cheap).moves).toBe(false)
    const slightly = place({ price: { input: 4.5, output: 22.5, cacheRead: 0.45 } })
    expect(moveCost({ ...turn, turns: 1 }, warm, slightly).moves).toBe(false)
  })

  test('is worth it if failures are likely and the prompt is short', () => {
    const short = { ...turn, promptTokens: 2_000 }
    const failing = place({ warmTokens: 2_000, failureRate: 0.75 })
    expect(moveCost(short, failing, place()).moves).toBe(true)
    expect(moveCost(short, { ...failing, failureRate: 0 }, place()).moves).toBe(false)
  })

  test('assumes the same price where one is unknown', () => {
    expect(moveCost(turn, warm, place({ price: undefined })).laterUsd).toBe(0)
    expect(moveCost(turn, { ...warm, price: undefined }, place({ price: undefined })).refillUsd).toBeGreaterThan(0)
  })
})
