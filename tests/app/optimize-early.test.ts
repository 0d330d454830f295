import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { optimizeAfterRequests } from '../../src/app/optimize-early.ts'
import type { ServiceEvent } from '../../src/domain/events.ts'

const source = new URL('../../src/app/optimize-early.ts', import.meta.url).href
/** A bit of V8's `OptimizationStatus`: the code is TurboFan's. */
const turbofanned = 1 << 5
const calls = 1_500

/** V8's compilers have threads of their own, which a busy machine delays. */
const compilerMs = 10_000

/** Whether V8's last compiler compiles a function after 1,500 calls in a new process. */
function isOptimized(prepare: string, limitMs = 100): boolean {
  const script = `import { setTimeout } from 'node:timers/promises'
    import { optimizeEarly } from '${source}'
    ${prepare}
    const double = (value) => ({ value: value.value * 2 })
    for (let call = 0; call < ${calls}; call++) {
      double({ value: call })
      if (call % 50 === 0) await setTimeout(2)
    }
    const isOptimized = () => (%GetOptimizationStatus(double) & ${turbofanned}) !== 0
    const untilMs = performance.now() + ${limitMs}
    while (!isOptimized() && performance.now() < untilMs) {
      await setTimeout(20)
      double({ value: 1 })
    }
    console.log(isOptimized())`
  const args = ['--allow-natives-syntax', '--input-type=module', '--eval', script]
  return execFileSync(process.execPath, args, { encoding: 'utf8' }) === 'true\n'
}

describe('optimizeEarly', () => {
  it('makes V8 optimize a function that it would not optimize yet', () => {
    expect(isOptimized('')).toBe(false)
    expect(isOptimized('optimizeEarly()', compilerMs)).toBe(true)
  }, 20_000)
})

describe('optimizeAfterRequests', () => {
  it('optimizes once, after a thousand requests, and passes every event on', () => {
    let passed = 0
    let optimized = 0
    const log = optimizeAfterRequests(
      () => (passed += 1),
      () => (optimized += 1),
    )
    const event = { event: 'request' } as ServiceEvent
    for (let count = 1; count < 1_000; count += 1) log(event)
    log({ event: 'draining', openRequests: 0 })
    expect([passed, optimized]).toEqual([1_000, 0])
    for (let count = 0; count < 2_000; count += 1) log(event)
    expect([passed, optimized]).toEqual([3_000, 1])
  })
})
