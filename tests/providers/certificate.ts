import { generateKeyPairSync, sign } from 'node:crypto'

/**
 * Generates a self-signed certificate for `localhost` and its key, both PEM, so that the repository contains no key.
 */
export function makeCertificate(): { cert: string; key: string | Buffer } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
  const commonName = sequence(tag(0x31, sequence(oid(0x55, 0x04, 0x03), tag(0x0c, Buffer.from('svc-router test')))))
  const validity = sequence(utcTime(-1), utcTime(1))
  const subjectAltName = sequence(oid(0x55, 0x1d, 0x11), tag(0x04, sequence(tag(0x82, Buffer.from('localhost')))))
  const basicConstraints = sequence(oid(0x55, 0x1d, 0x13), tag(0x04, sequence(tag(0x01, Buffer.from([0xff])))))
  const body = sequence(
    tag(0xa0, tag(0x02, Buffer.from([2]))),
    tag(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    commonName,
    validity,
    commonName,
    publicKey.export({ type: 'spki', format: 'der' }),
    tag(0xa3, sequence(subjectAltName, basicConstraints)),
  )
  const signature = sign('sha256', body, privateKey)
  const der = sequence(body, ecdsaWithSha256, tag(0x03, Buffer.concat([Buffer.from([0]), signature])))
  const base64 = der.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
}

function tag(number: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([number, ...size]), content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tag(0x30, Buffer.concat(parts))
}

function oid(...bytes: readonly number[]): Buffer {
  return tag(0x06, Buffer.from(bytes))
}

function utcTime(daysFromNow: number): Buffer {
  const text = new Date(Date.now() + daysFromNow * 86_400_000).toISOString().replace(/[-:T]/g, '').slice(2, 14)
  return tag(0x17, Buffer.from(`${text}Z`))
}
