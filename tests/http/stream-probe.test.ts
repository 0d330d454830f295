import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import { StreamProbes } from '../../src/http/stream-probe.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

test('at most a hundred probes run at once, and one that ends makes room', () => {
  const probes = new StreamProbes(new ManualClock())
  const send = (): ServerResponse => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    probes.send(response, 'req_1')
    return response
  }
  const open = Array.from({ length: 100 }, send)
  expect(send).toThrow(ServiceError)
  open[0]!.emit('close')
  expect(send).not.toThrow()
  expect(send).toThrow(ServiceError)
})
