import { createSocket, type RemoteInfo } from 'node:dgram'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { postJson } from '../../../src/providers/http/one-call.ts'
import { resolverLookup } from '../../../src/providers/http/resolver-lookup.ts'
import { openPools, serveHttp } from '../support.ts'

/** A name server on this machine. `answer` gives the IPv4 addresses of a name; undefined for no answer at all. */
async function nameServer(answer: () => readonly string[] | undefined): Promise<{ at: string; asked: () => number }> {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    asked += 1
    const addresses = answer()
    if (addresses === undefined) return
    // Behind the name: its type. 1 is A; others have no addresses.
    const typeAt = query.indexOf(0, 12) + 1
    const records = query.readUInt16BE(typeAt) === 1 ? addresses : []
    const question = query.subarray(12, typeAt + 4)
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180, 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    const answers = records.map((address) =>
      Buffer.concat([
        Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]),
        Buffer.from(address.split('.').map(Number)),
      ]),
    )
    socket.send(Buffer.concat([head, question, ...answers]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { at: `127.0.0.1:${socket.address().port}`, asked: () => asked }
}

/** The addresses of a name, or the code of the error. */
function lookUp(server: string): Promise<readonly LookupAddress[] | string | undefined> {
  return new Promise((resolve) => {
    resolverLookup([server])('hooks.example.com', { all: true }, (error, found) =>
      resolve(error === null ? found : error.code),
    )
  })
}

test('a name with public addresses is found', async () => {
  const { at } = await nameServer(() => ['93.184.216.34', '1.1.1.1'])
  expect(await lookUp(at)).toEqual([
    { address: '93.184.216.34', family: 4 },
    { address: '1.1.1.1', family: 4 },
  ])
})

test('of the addresses of a name, only public ones are used', async () => {
  const { at } = await nameServer(() => ['10.0.0.1', '93.184.216.34', '169.254.169.254'])
  expect(await lookUp(at)).toEqual([{ address: '93.184.216.34', family: 4 }])
})

test('a name without public addresses is unknown', async () => {
  const { at } = await nameServer(() => ['127.0.0.1'])
  expect(await lookUp(at)).toBe('ENOTFOUND')
})

test('a name server that does not answer is given up, and the connection with it', async () => {
  const { at, asked } = await nameServer(() => undefined)
  const beganMs = performance.now()
  const lookup = resolverLookup([at])
  const post = { url: 'http://hooks.example.com/', headers: [], body: '{}', account: { id: 'acc_1', publicOnly: true } }
  await expect(postJson(post, openPools({ lookup }), 'req_test')).rejects.toMatchObject({
    outcome: expect.stringMatching(/^(?:timeout|unreachable)$/) as string,
  })
  expect(performance.now() - beganMs).toBeLessThan(6_000)
  expect(asked()).toBeGreaterThan(0)
})

test.each(['127.0.0.1', '10.1.2.3', '169.254.169.254', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1'])(
  'a message to %s is not sent if only public addresses may be reached',
  async (host) => {
    let got = 0
    const { baseUrl } = await serveHttp((_, response) => {
      got += 1
      response.writeHead(204).end()
    })
    const url = `http://${host}:${new URL(baseUrl).port}/`
    const pools = openPools({ lookup: resolverLookup(['127.0.0.1:1']) })
    const post = { url, headers: [], body: '{}', account: { id: 'acc_1', publicOnly: true } }
    await expect(postJson(post, pools, 'req_test')).rejects.toMatchObject({ outcome: 'unreachable' })
    expect(got).toBe(0)
  },
)

test('a name that changes to a private address is not reached there', async () => {
  let got = 0
  const { baseUrl } = await serveHttp((_, response) => {
    got += 1
    response.writeHead(204).end()
  })
  let address = '93.184.216.34'
  const { at, asked } = await nameServer(() => [address])
  expect(await lookUp(at)).toHaveLength(1)
  address = '127.0.0.1'
  const url = `http://hooks.example.com:${new URL(baseUrl).port}/`
  const post = { url, headers: [], body: '{}', account: { id: 'acc_1', publicOnly: true } }
  const pools = openPools({ lookup: resolverLookup([at]) })
  await expect(postJson(post, pools, 'req_test')).rejects.toMatchObject({ outcome: 'unreachable' })
  expect(got).toBe(0)
  expect(asked()).toBeGreaterThan(2)
})
