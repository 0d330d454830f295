import { isAscii } from 'node:buffer'

const modelKey = '"model"'
const space = 0x20
const quote = 0x22
const colon = 0x3a
const notPlain = /[^ -~]/

/**
 * The same JSON as latin1 text with the profile instead of the model (contract 2.31); undefined if the model's place is
 * not certain. `decoded` is the JSON decoded as UTF-8, and `name` is the profile as JSON. Text costs half as much as bytes.
 */
export function renameModel(json: Buffer, decoded: string, name: string): string | undefined {
  // In ASCII, both encodings are the same.
  const text = isAscii(json) ? decoded : json.toString('latin1')
  const from = onlyModelIn(text)
  if (from < 0) return undefined
  const to = text.indexOf('"', from + 1) + 1
  if (to === 0 || text.slice(from, to).includes('\\')) return undefined
  return text.slice(0, from) + (notPlain.test(name) ? Buffer.from(name).toString('latin1') : name) + text.slice(to)
}

/**
 * The offset of the model's name, if its key appears only once: then it is the answer's own. Otherwise -1, and the JSON
 * must be parsed to find it.
 */
function onlyModelIn(text: string): number {
  let only = -1
  for (let at = text.indexOf(modelKey); at >= 0; at = text.indexOf(modelKey, at + modelKey.length)) {
    const value = valueAfter(text, at + modelKey.length)
    if (text.charCodeAt(value) !== quote) continue
    if (only >= 0) return -1
    only = value
  }
  return only
}

/** The offset of the value whose key ends at `from`; -1 if no value follows. */
function valueAfter(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) <= space) at += 1
  if (text.charCodeAt(at) !== colon) return -1
  at += 1
  while (text.charCodeAt(at) <= space) at += 1
  return at
}
