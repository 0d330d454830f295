import { expect, test } from 'vitest'
import { expectRandomSound, startMixed } from '../simulation/mixed-turns.ts'

const conversations = 20_000

test(`${conversations} random conversations of a model with our tool and one of its caller's are sound`, async () => {
  const service = await startMixed()
  try {
    await expect(expectRandomSound(service, conversations, 44)).resolves.toBeUndefined()
  } finally {
    await service.stop()
  }
})
