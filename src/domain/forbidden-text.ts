import { credentialShapes, type SecretShape, unknownCredential } from './secret-shapes.ts'

/**
 * Shapes that are not provider credentials but must not be sent to support (contract 27.2): access tokens, passwords,
 * and content of conversations.
 */
const otherShapes: readonly SecretShape[] = [
  { kind: 'one of our keys', shape: /sk_svc_[0-9A-Za-z]{4,}/g },
  { kind: 'an access token', shape: /\bBearer\s+(?!sk_svc_…)[\w.~+/-]{12,}=*/gi },
  {
    kind: 'an access token',
    shape: /\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:Basic|Digest|Token|AWS4[\w-]*)\s+\S{8,}/gi,
  },
  {
    kind: 'an access token',
    shape: /\b(?:access|refresh|id|session|auth)_?token\\?["']?\s*[:=]\s*\\?["']?[^\s"',;]{6,}/gi,
  },
  { kind: 'an access token', shape: /[?&](?:token|sig|signature|access_key|api_?key|key)=[\w.~%+-]{12,}/gi },
  {
    kind: 'an access token',
    shape: /\b(?:ya29\.|1\/\/0|xox[a-z][.-]|xapp-|glpat-|github_pat_|npm_|pypi-|whsec_|SG\.)[\w.-]{8,}/g,
  },
  { kind: 'an access token', shape: /(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{12,}/g },
  { kind: 'an access token', shape: /\bhooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/-]{8,}/gi },
  { kind: 'an AWS key', shape: /(?<![A-Za-z0-9])A(?:SIA|BIA|CCA)[A-Z0-9]{12,}/g },
  {
    kind: 'a password',
    shape:
      /(?<![A-Za-z0-9])(?:password|passwd|passphrase|secret(?:[_-]?access)?(?:[_-]?key)?|(?:api|private|account)[_-]?key)\\?["']?\s*[:=]\s*\\?["']?[^\s"',;\\]{6,}/gi,
  },
  { kind: 'a private key', shape: /["']d\\?["']\s*:\s*\\?["'][\w-]{20,}/g },
  { kind: 'a cookie', shape: /\b(?:set-)?cookie\\?["']?\s*:\s*\\?["']?[\w.-]+=[^\s;"']+/gi },
  { kind: 'a cookie', shape: /(?<![\w-])[\w-]*sess(?:ion)?(?:_?id)?=[\w%.+/-]{12,}/gi },
  {
    kind: 'a conversation',
    shape: /\brole\\?["']?\s*:\s*\\?["'](?:system|developer|user|assistant|tool|function|model)\\?["']/g,
  },
  {
    kind: 'a conversation',
    shape: /["'](?:messages|input|contents?|parts|prompt|instructions|system)\\?["']\s*:\s*[[{"'\\]/g,
  },
  { kind: 'a conversation', shape: /["']type\\?["']\s*:\s*\\?["'](?:input_text|text|tool_result|tool_use)\\?["']/g },
  {
    kind: 'a provider’s answer',
    shape: /["'](?:choices|output|output_text|candidates|completion|delta)\\?["']\s*:\s*[[{"'\\]/g,
  },
]

/**
 * Harmless text that the check for unknown credentials would report: ids, hashes that are labeled as such, and names in
 * source code. They are set aside for that check only.
 */
const harmlessShapes: readonly RegExp[] = [
  /\b(?:req|resp|msg|inc|acc|key|ses|ups|tic|mar|upg|prf|fc|ctc|rs|call|toolu|srvtoolu|batch|file)_[0-9A-Za-z]{8,64}\b/g,
  /\bchatcmpl-[0-9A-Za-z]{8,64}\b/g,
  /\bgen-\d{8,12}-[0-9A-Za-z]{8,40}\b/g,
  /\b(?:sha-?(?:1|224|256|384|512)|md5|commit|revision|digest|checksum|hash|etag|trace[ _-]?id|traceparent)["']?\s?(?:is |was |of )?[:=@/-]?\s?["']?(?:00-)?[0-9a-f]{7,128}\b/gi,
  /\bsha(?:1|256|384|512)-[A-Za-z0-9+/]{20,100}={0,2}/g,
  // Words of at least three letters, each capitalized. Random text hardly ever has such a run.
  /(?<![A-Za-z0-9])[a-z]{0,20}(?:[A-Z]{1,5}[a-z]{2,20}\d{0,3}){2,8}(?![A-Za-z0-9=+/])/g,
]

/** Everything that a message to support must not contain. Exact shapes come first, so that they determine the kind. */
const exactShapes = [...otherShapes, ...credentialShapes.filter(({ kind }) => kind !== unknownCredential)]
const guessedShapes = credentialShapes.filter(({ kind }) => kind === unknownCredential)

/** The kinds of forbidden content in a text, each once; empty if there is none. */
export function findForbidden(text: string): readonly string[] {
  const rest = harmlessShapes.reduce((left, shape) => left.replace(shape, ' '), text)
  const found = [
    ...exactShapes.filter(({ shape }) => text.search(shape) >= 0),
    ...guessedShapes.filter(({ shape }) => rest.search(shape) >= 0),
  ]
  return [...new Set(found.map(({ kind }) => kind))]
}

/** Content of these kinds cannot be separated from the rest of the text. */
const wholeKinds: readonly string[] = ['a conversation', 'a provider’s answer']

/** The text with forbidden content masked; empty if it contains a conversation. */
export function maskForbidden(text: string): string {
  if (findForbidden(text).some((kind) => wholeKinds.includes(kind))) return ''
  let masked = text.replaceAll('\u0000', '')
  for (const { shape } of exactShapes) masked = masked.replace(shape, '•••')
  const aside: string[] = []
  for (const shape of harmlessShapes) masked = masked.replace(shape, (found) => `\u0000${aside.push(found) - 1}\u0000`)
  for (const { shape } of guessedShapes) masked = masked.replace(shape, '•••')
  // eslint-disable-next-line no-control-regex
  return masked.replace(/\u0000(\d+)\u0000/g, (_, index: string) => aside[Number(index)] ?? '')
}

/** The same shapes for a page, as source and flags, so that found content never leaves the browser. */
export function forbiddenAsData(): {
  readonly harmless: readonly (readonly string[])[]
  readonly exact: readonly (readonly string[])[]
  readonly guessed: readonly (readonly string[])[]
} {
  const asData = ({ kind, shape }: SecretShape): readonly string[] => [kind, shape.source, shape.flags]
  return {
    harmless: harmlessShapes.map(({ source, flags }) => [source, flags]),
    exact: exactShapes.map(asData),
    guessed: guessedShapes.map(asData),
  }
}
