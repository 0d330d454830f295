import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'

const source = new URL('../../src/app/optimize-early.ts', import.meta.url).href
/** A bit of V8's `OptimizationStatus`: the code is TurboFan's. */
const turbofanned = 1 << 5
const calls = 1_500

/** Whether V8's last compiler has compiled a function after 1,500 calls in a new process. */
function isOptimized(prepare: string): boolean {
  const script = `import { setTimeout } from 'node:timers/promises'
    import { optimizeEarly } from '${source}'
    ${prepare}
    const double = (value) => ({ value: value.value * 2 })
    for (let call = 0; call < ${calls}; call++) {
      double({ value: call })
      if (call % 50 === 0) await setTimeout(2)
    }
    await setTimeout(50)
    double({ value: 1 })
    console.log(%GetOptimizationStatus(double))`
  const args = ['--allow-natives-syntax', '--input-type=module', '--eval', script]
  return (Number(execFileSync(process.execPath, args, { encoding: 'utf8' })) & turbofanned) !== 0
}

describe('optimizeEarly', () => {
  it('makes V8 optimize a function that it would not optimize yet', () => {
    expect(isOptimized('')).toBe(false)
    expect(isOptimized('optimizeEarly()')).toBe(true)
  })
})
