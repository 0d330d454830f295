import type { DemoServiceOptions } from './demo-ports.ts'
import type { Stage } from './stage.ts'

/** One promise of the service, and how to show that it is kept. */
export interface Demo {
  readonly name: string
  /** One line for the list. */
  readonly summary: string
  /** The promise, as one sentence. */
  readonly promise: string
  readonly service: DemoServiceOptions
  /** The headers that show the promise. */
  readonly headers: readonly string[]
  run(stage: Stage): Promise<void>
}
