import { expect, test } from 'vitest'
import { EdgeGate } from '../../src/http/edge-gate.ts'

test('a User-Agent is judged the same each time, however many others were accepted', () => {
  const gate = new EdgeGate(
    () => {},
    () => 0,
  )
  const pass = (userAgent: string | undefined) => (): void => gate.pass(userAgent, 'req_1')
  for (let round = 0; round < 2; round++) {
    expect(pass('OpenAI/JS 7.55.0')).not.toThrow()
    for (const blocked of [undefined, '', 'unknown', 'sqlmap/1.8', 'Mozilla/5.0']) expect(pass(blocked)).toThrow('1010')
    for (let client = 0; client < 1_000; client++) expect(pass(`client-${client}`)).not.toThrow()
  }
})
