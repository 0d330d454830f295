import { describe, expect, test } from 'vitest'
import {
  type ChainBreak,
  ChainFollower,
  type ChainLink,
  type ChainPosition,
  chainStart,
  readLink,
  writeLink,
} from '../../src/domain/audit-chain.ts'
import { type Actor, type AuditEvent, writeEntry } from '../../src/domain/audit.ts'
import { checkCheckpoint, readCheckpoint, signCheckpoint, writeCheckpoint } from '../../src/domain/checkpoint.ts'
import { casesOf } from '../long-run.ts'
import { chainOf, madeUpKeys, rehashed } from './audit-log.ts'

const seed = 20_261_121
const tamperings = casesOf({ sample: 2_000, all: 10_000 })
const entries = 24

/** A small generator with a seed, so that a failure is seen again. */
function randomFrom(start: number): (below: number) => number {
  let state = start
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function breakOf(links: readonly (ChainLink | undefined)[], proven: readonly ChainPosition[]): ChainBreak | undefined {
  const follower = new ChainFollower(chainStart, proven)
  for (const link of links) {
    const at = follower.follow(link)
    if (at !== undefined) return at
  }
  return follower.end()
}

const whole = chainOf(entries)
const lines = whole.map(writeLink)
const head: ChainPosition = { sequence: entries, hash: whole.at(-1)!.hash }

/** What a forger may do to the lines of an exported log; each changes something, or gives undefined. */
const tampers: Readonly<Record<string, (copy: string[], random: (below: number) => number) => void>> = {
  'a character changed': (copy, random) => {
    const at = random(copy.length)
    const line = copy[at]!
    const place = random(line.length)
    const other = String.fromCharCode(32 + random(95))
    copy[at] = line.slice(0, place) + other + line.slice(place + 1)
  },
  'a character put in or taken out': (copy, random) => {
    const at = random(copy.length)
    const line = copy[at]!
    const place = random(line.length)
    copy[at] =
      random(2) === 0 ? `${line.slice(0, place)} ${line.slice(place)}` : line.slice(0, place) + line.slice(place + 1)
  },
  'entries taken out': (copy, random) => void copy.splice(random(copy.length - 1), 1 + random(3)),
  'two entries exchanged': (copy, random) => {
    const first = random(copy.length)
    const second = random(copy.length)
    ;[copy[first], copy[second]] = [copy[second]!, copy[first]!]
  },
  'an entry repeated': (copy, random) => void copy.splice(random(copy.length + 1), 0, copy[random(copy.length)]!),
  'the end truncated': (copy, random) => void copy.splice(random(copy.length)),
  'an entry changed and every hash made again': (copy, random) => {
    const links = copy.map((line) => readLink(line)!)
    const at = random(links.length)
    const entry = links[at]!.entry.replace(/"atMs":(\d+)/, (_, ms: string) => `"atMs":${Number(ms) + 1 + random(9)}`)
    links[at] = { ...links[at]!, entry }
    copy.splice(0, copy.length, ...rehashed(links).map(writeLink))
  },
  'an entry taken out, the rest numbered and hashed again, and one more put at the end': (copy, random) => {
    const links = copy.map((line) => readLink(line)!)
    links.splice(random(links.length), 1)
    links.push({ ...links[random(links.length)]! })
    const numbered = links.map(({ entry, hash }, index) => ({
      entry: entry.replace(/"sequence":\d+/, `"sequence":${index + 1}`),
      hash,
    }))
    copy.splice(0, copy.length, ...rehashed(numbered).map(writeLink))
  },
}

describe('a tampered log', () => {
  test(`${tamperings} random edits, deletions, reorderings, forgeries, and truncations are all detected with the checkpoint (seed ${seed})`, () => {
    const random = randomFrom(seed)
    const kinds = Object.entries(tampers)
    const done = new Map<string, number>()
    let count = 0
    while (count < tamperings) {
      const [kind, tamper] = kinds[random(kinds.length)]!
      const copy = [...lines]
      tamper(copy, random)
      // Some do nothing by chance: a character replaced by itself, an entry exchanged with itself.
      if (copy.join('\n') === lines.join('\n')) continue
      count += 1
      done.set(kind, (done.get(kind) ?? 0) + 1)
      const found = breakOf(
        copy.map((line) => readLink(line)),
        [head],
      )
      if (found === undefined) expect.fail(`not found: ${kind}, number ${count}, seed ${seed}`)
    }
    expect([...done.keys()].toSorted()).toEqual(Object.keys(tampers).toSorted())
    expect(Math.min(...done.values())).toBeGreaterThan(tamperings / kinds.length / 2)
  })

  test('an unchanged log is valid, with and without checkpoints', () => {
    expect(breakOf(whole, [])).toBeUndefined()
    expect(breakOf(whole, [{ sequence: 10, hash: whole[9]!.hash }, head])).toBeUndefined()
    expect(breakOf([], [])).toBeUndefined()
  })

  test('a break is reported with its position and reason', () => {
    const changed = whole.with(4, { ...whole[4]!, entry: whole[4]!.entry.replace('acc_', 'acc_9') })
    expect(breakOf(changed, [])).toEqual({ sequence: 5, why: 'changed' })
    expect(breakOf(whole.toSpliced(4, 1), [])).toEqual({ sequence: 5, why: 'gap' })
    expect(breakOf([...whole.slice(0, 5), whole[2]!], [])).toEqual({ sequence: 3, why: 'repeated' })
    expect(breakOf([...whole.slice(0, 5), undefined], [])).toEqual({ sequence: 6, why: 'malformed' })
    expect(breakOf(whole.slice(0, 20), [head])).toEqual({ sequence: 21, why: 'cut' })
    expect(breakOf(rehashed(changed), [])).toBeUndefined()
    expect(breakOf(rehashed(changed), [{ sequence: 10, hash: whole[9]!.hash }, head])).toEqual({
      sequence: 10,
      why: 'rewritten',
    })
  })

  test('entries of a newer version are verified like known ones', () => {
    const entry = '{"sequence":1,"atMs":5,"actor":{"kind":"robot"},"event":{"type":"later.event","more":[1]}}'
    expect(breakOf(rehashed([{ entry, hash: '' }]), [])).toBeUndefined()
  })
})

describe('an event in its canonical form', () => {
  const record = { sequence: 1, atMs: 5.7, actor: { kind: 'cli' } as Actor }
  const created: AuditEvent = { type: 'key.created', accountId: 'acc_1', keyId: 'key_1' }

  test('has its members in one order, whatever the input order, and omits unknown ones', () => {
    const shuffled = { keyId: 'key_1', secret: 'made-up', type: 'key.created', accountId: 'acc_1' } as AuditEvent
    expect(writeEntry({ ...record, event: shuffled })).toBe(writeEntry({ ...record, event: created }))
    expect(writeEntry({ ...record, event: created })).toBe(
      '{"sequence":1,"atMs":5,"actor":{"kind":"cli"},"event":{"type":"key.created","accountId":"acc_1","keyId":"key_1"}}',
    )
  })

  test.each([
    'sk_svc_ABCDEFGHIJKLMNOPQRSTUVWXYZ012345678901',
    'somebody@example.com',
    'two words',
    '',
    'key_1\n',
    'x'.repeat(90),
  ])('accepts no key, address, or free text, and the error does not repeat it: %j', (text) => {
    const write =
      (event: AuditEvent, actor: Actor = record.actor) =>
      () =>
        writeEntry({ ...record, event, actor })
    const attempts = [
      write({ ...created, keyId: text }),
      write({ type: 'account.plan_changed', accountId: 'acc_1', planId: text }),
      write({ type: 'managed.resale_recorded', provider: 'openai', noteId: text }),
      write(created, { kind: 'operator', operatorId: text }),
      write(created, { kind: 'session', sessionId: text, accountId: 'acc_1' }),
    ]
    for (const attempt of attempts) {
      expect(attempt).toThrow(TypeError)
      expect(attempt).not.toThrow(text === '' ? 'no text at all' : text)
    }
  })
})

describe('checkpoints', () => {
  test('are authentic only with the key that signed them, even after a rotation', () => {
    const checkpoint = signCheckpoint(madeUpKeys(1), head, 77)
    expect(checkCheckpoint(madeUpKeys(1), checkpoint)).toBe('authentic')
    expect(checkCheckpoint(madeUpKeys(2, 1), checkpoint)).toBe('authentic')
    expect(checkCheckpoint(madeUpKeys(2), checkpoint)).toBe('unknown_key')
    expect(checkCheckpoint(madeUpKeys(2), { ...checkpoint, keyId: 'key2' })).toBe('forged')
    for (const changed of [{ sequence: 9 }, { hash: whole[0]!.hash }, { atMs: 78 }, { mac: '' }])
      expect(checkCheckpoint(madeUpKeys(1), { ...checkpoint, ...changed })).toBe('forged')
  })

  test('are written as one line and parsed again, and anything else is rejected', () => {
    const checkpoint = signCheckpoint(madeUpKeys(1), head, 77)
    expect(readCheckpoint(`${writeCheckpoint(checkpoint)}\n`)).toEqual(checkpoint)
    for (const text of [
      '',
      '{}',
      '[]',
      writeCheckpoint(checkpoint).replace('"version":1', '"version":2'),
      '{"version":1}',
    ])
      expect(readCheckpoint(text)).toBeUndefined()
  })
})
