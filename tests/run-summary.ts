import type { Reporter, TestModule } from 'vitest/node'

const slowestShown = 10

/** Prints the slowest test files at the end of a run, and the tests that passed only when they were run again. */
export class RunSummary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length > slowestShown) printSlowest(modules)
    printRepeated(modules)
  }
}

function printSlowest(modules: readonly TestModule[]): void {
  const slowest = modules
    .map((module) => ({ name: module.relativeModuleId, ms: module.diagnostic().duration }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, slowestShown)
  const lines = slowest.map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${name}`)
  process.stdout.write(`\nSlowest files:\n${lines.join('\n')}\n\n`)
}

function printRepeated(modules: readonly TestModule[]): void {
  const lines: string[] = []
  for (const module of modules)
    for (const test of module.children.allTests()) {
      if (test.diagnostic()?.flaky !== true) continue
      const reasons = (test.result().errors ?? []).map(({ message }) => message)
      lines.push(`${module.relativeModuleId} > ${test.fullName}: ${reasons.join('; ')}`)
    }
  if (lines.length > 0) process.stdout.write(`\nPASSED ONLY ON THE SECOND RUN:\n${lines.join('\n')}\n\n`)
}
