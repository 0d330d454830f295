import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { type ChannelEnd, ProcessReports } from '../../src/runtime/process-reports.ts'

class End extends EventEmitter implements ChannelEnd {
  connected = true
  other: End | undefined

  send(message: object): boolean {
    const text = JSON.stringify(message)
    setImmediate(() => this.other?.emit('message', JSON.parse(text)))
    return true
  }
}

function channel(): { readonly parent: End; readonly child: End } {
  const [parent, child] = [new End(), new End()]
  parent.other = child
  child.other = parent
  return { parent, child }
}

test('both ends of a channel ask and answer, each in its own order', async () => {
  const { parent, child } = channel()
  const [asking, answering] = [new ProcessReports(parent), new ProcessReports(child)]
  answering.answer('slow', async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return 'later'
  })
  answering.answer('sum', (data) => (data as number[]).reduce((sum, value) => sum + value, 0))
  asking.answer('who', () => ({ name: 'parent' }))
  const slow = asking.ask('slow')
  expect(await asking.ask('sum', { data: [1, 2, 3] })).toBe(6)
  expect(await answering.ask('who')).toEqual({ name: 'parent' })
  expect(await slow).toBe('later')
})

test('without an answer in time, without a topic, and without a channel there is none', async () => {
  const { parent, child } = channel()
  const [asking, answering] = [new ProcessReports(parent), new ProcessReports(child)]
  answering.answer('hangs', () => new Promise(() => {}))
  expect(await asking.ask('hangs', { limitMs: 20 })).toBeUndefined()
  expect(await asking.ask('unknown', { limitMs: 20 })).toBeUndefined()
  child.emit('message', 'listening')
  child.emit('message', null)
  parent.connected = false
  const startedMs = performance.now()
  expect(await asking.ask('hangs')).toBeUndefined()
  expect(performance.now() - startedMs).toBeLessThan(500)
})
