const text = JSON.stringify({ text: String.raw`\ud800 and "some" text. `.repeat(100_000) })
const rounds = 20
/** CPU time of `work` on the machine for which the time limits of tests were chosen, when it is quiet: milliseconds. */
const usualMs = 100

/** How many times slower than that machine this one is at the moment, at least 1: for limits of CPU time in tests. */
export function slowdown(): number {
  return Math.max(1, work() / usualMs)
}

/** Parses and writes JSON; returns the CPU time of that, in milliseconds. */
function work(): number {
  const before = process.threadCpuUsage()
  for (let round = 0; round < rounds; round++) {
    if (JSON.stringify(JSON.parse(text)).length !== text.length) throw new Error('the text has changed')
  }
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
