import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { startHostileProvider } from './hostile-provider.ts'

/**
 * A hostile account and its hostile provider. They have their own process, so that their CPU time is not measured.
 * Reports the address of the provider, receives the target, and attacks until a stop message or for two minutes.
 */
export interface Target {
  readonly apiPort: number
  readonly appPort: number
  /** A key on the default plan, which soon reaches its rate limit. */
  readonly key: string
  /** A key without limits, so that the hostile provider receives many requests. */
  readonly unlimitedKey: string
}

/** The local address of all attacks, different from that of the measured client. */
const localAddress = '127.0.0.2'
const longestAttackMs = 120_000
const halfSentBodies = 4_100
const halfSentLargeBodies = 100
const hanging = 75
const MiB = 1024 * 1024

const counts: Record<string, number> = {}
const sockets = new Set<Socket>()
const over = new AbortController()

/** Opens a connection, writes, and keeps it open. Resolves with the first bytes of the answer after it closes. */
function send(port: number, bytes: string | readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    sockets.add(socket)
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (answer.length < 4_096) answer += text
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      resolve(answer)
    })
    for (const part of typeof bytes === 'string' ? [bytes] : bytes) socket.write(part)
  })
}

/** Repeats an attack with a given concurrency and at least `pauseMs` between repetitions. */
async function keepUp(name: string, atOnce: number, pauseMs: number, act: () => Promise<string>): Promise<void> {
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (!over.signal.aborted) {
        counts[name] = (counts[name] ?? 0) + 1
        const status = /^HTTP\/1\.1 (\d+)/.exec(await act())?.[1] ?? 'closed'
        const label = `${name} ${status}`
        counts[label] = (counts[label] ?? 0) + 1
        await delay(pauseMs)
      }
    }),
  )
}

function head(path: string, key: string, headers: readonly string[]): string {
  const lines = [`POST ${path} HTTP/1.1`, 'host: x', 'user-agent: attacker/1', `authorization: Bearer ${key}`]
  return `${[...lines, 'content-type: application/json', 'connection: close', ...headers].join('\r\n')}\r\n\r\n`
}

function whole(key: string, body: string, headers: readonly string[] = []): string {
  return head('/v1/chat/completions', key, [`content-length: ${body.length}`, ...headers]) + body
}

function question(model: string, stream: boolean): string {
  return JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Hello' }] })
}

/** Texts on which ambiguous regular expressions are slow. */
const worstTexts = [
  'http://h/?://' + 'a:'.repeat(25_000),
  'sk-'.repeat(20_000),
  '-'.repeat(60_000),
  'eyJ'.repeat(20_000),
]

function attack({ apiPort, appPort, key, unlimitedKey }: Target): void {
  const ask = (profile: string, stream: boolean): Promise<string> =>
    send(apiPort, whole(unlimitedKey, question(`hostile/${profile}`, stream)))
  const form = (text: string): string => {
    const body = new URLSearchParams({ email: 'a@example.com', request_id: '', text }).toString()
    const lines = [
      'POST /support HTTP/1.1',
      `host: 127.0.0.1:${appPort}`,
      'user-agent: attacker/1',
      'connection: close',
    ]
    const type = 'content-type: application/x-www-form-urlencoded'
    return `${[...lines, `origin: http://127.0.0.1:${appPort}`, type, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`
  }
  const bomb = gzipSync(Buffer.alloc(200 * MiB, '{"a":'))
  const bombHead = head('/v1/chat/completions', key, ['content-encoding: gzip', `content-length: ${bomb.length}`])
  let turn = 0
  const next = (): string => worstTexts[turn++ % worstTexts.length] ?? ''
  const attacks: readonly Promise<void>[] = [
    keepUp('half-sent', halfSentBodies, 10_000, () =>
      send(apiPort, `${head('/v1/chat/completions', key, ['content-length: 1000'])}{`),
    ),
    keepUp('half-sent large', halfSentLargeBodies, 3_000, () =>
      send(apiPort, [
        head('/v1/chat/completions', key, [`content-length: ${5 * MiB}`]),
        '{"messages":"',
        Buffer.alloc(2.5 * MiB, 'a'),
      ]),
    ),
    keepUp('hang', hanging, 200, () => ask('hang', true)),
    keepUp('full rate', 4, 50, () => send(apiPort, whole(key, question('hostile/numbers', false)))),
    keepUp('numbers', 2, 50, () => ask('numbers', false)),
    keepUp('patterns', 2, 50, () => send(appPort, form(next()))),
    keepUp('deep', 2, 50, () => send(apiPort, whole(key, `{"model":"x","messages":${'['.repeat(100_000)}`))),
    keepUp('long header', 2, 50, () =>
      send(apiPort, whole(key, question('hostile/hang', true), [`x-filler: ${'a/'.repeat(6_000)}`])),
    ),
    keepUp('bomb', 2, 100, () => send(apiPort, [bombHead, bomb])),
    ...(['comments', 'unframed', 'interim', 'errors', 'long-refusal'] as const).map((profile) =>
      keepUp(profile, profile === 'comments' ? 8 : 5, 1_000, () => ask(profile, profile !== 'long-refusal')),
    ),
  ]
  void Promise.all(attacks)
}

function say(message: object): void {
  process.send?.(message)
}

function stop(): void {
  over.abort()
  provider.close()
  for (const socket of sockets) socket.destroy()
  setTimeout(() => process.exit(0), 100)
}

const provider = await startHostileProvider()
process.on('message', (message: Target | 'stop' | 'counts') => {
  if (message === 'stop') stop()
  else if (message === 'counts') say(counts)
  else attack(message)
})
// The measuring process has exited, so exit, too.
process.on('disconnect', () => process.exit(0))
setTimeout(stop, longestAttackMs).unref()
say({ baseUrl: provider.baseUrl })
