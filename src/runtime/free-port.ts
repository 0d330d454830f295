import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A port of the host on which nothing listens right now. @throws the system's error */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const probe = createServer()
  probe.listen(0, host)
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
