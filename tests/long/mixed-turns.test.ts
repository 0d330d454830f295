import { expect, test } from 'vitest'
import { expectRandomSound, startMixed } from '../simulation/mixed-turns.ts'

const conversations = 20_000

test(`${conversations} random conversations of a model that calls our tool and a client's tool satisfy all invariants`, async () => {
  const service = await startMixed()
  try {
    await expect(expectRandomSound(service, conversations, 44)).resolves.toBeUndefined()
  } finally {
    await service.stop()
  }
})
