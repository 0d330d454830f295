import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'
import { traps } from './trap-items.ts'

/** Every handwritten trap once, in random order. */
export function drawTraps(draw: Draw): Drawn[] {
  return draw.shuffled(traps).map(({ ask, ...rest }) => ({ body: ask, ...rest }))
}
