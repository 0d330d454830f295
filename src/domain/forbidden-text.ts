import { credentialShapes, type SecretShape } from './secret-shapes.ts'

/** What is no credential by itself and still must not be told (spec 1.9): what lets somebody in, and what people said. */
const otherShapes: readonly SecretShape[] = [
  { kind: 'one of our keys', shape: /sk_svc_[0-9A-Za-z]{4,}/g },
  { kind: 'an access token', shape: /\bBearer\s+(?!sk_svc_…)[\w.~+/-]{12,}=*/gi },
  { kind: 'an access token', shape: /\b(?:access|refresh|id|session|auth)_?token["']?\s*[:=]\s*["']?[^\s"',;]{6,}/gi },
  { kind: 'an access token', shape: /\b(?:ya29\.|1\/\/0|xox[a-z]-|glpat-|github_pat_)[\w-]{8,}/g },
  { kind: 'a password', shape: /\b(?:password|passwd|secret|api[_-]?key)["']?\s*[:=]\s*["']?[^\s"',;]{6,}/gi },
  { kind: 'a cookie', shape: /\b(?:set-)?cookie["']?\s*:\s*["']?[\w.-]+=[^\s;"']+/gi },
  { kind: 'a cookie', shape: /\b[\w-]*sess(?:ion)?(?:id)?=[\w%.+/-]{12,}/gi },
  { kind: 'a conversation', shape: /["']role["']\s*:\s*["'](?:system|developer|user|assistant|tool)["']/g },
  { kind: 'a conversation', shape: /["'](?:messages|input|contents|prompt)["']\s*:\s*[[{"']/g },
  { kind: 'a provider’s answer', shape: /["'](?:choices|output|candidates|completion)["']\s*:\s*[[{"']/g },
]
/** Ids of ours, which are asked for and look like tokens. */
const ownIds = /\b(?:req|resp|msg|inc|acc|key|chatcmpl)[_-][0-9A-Za-z]{8,64}\b/g

/** Everything that a message to support must not hold. The first are the exact ones, so that they give the name. */
const forbiddenShapes: readonly SecretShape[] = [...otherShapes, ...credentialShapes]

/** The kinds of what a text holds that must not be told, each once; empty where there is nothing. */
export function findForbidden(text: string): readonly string[] {
  const rest = text.replace(ownIds, '')
  return [...new Set(forbiddenShapes.filter(({ shape }) => rest.search(shape) >= 0).map(({ kind }) => kind))]
}

/** Of these nothing can be told apart from the rest of the text. */
const wholeKinds: readonly string[] = ['a conversation', 'a provider’s answer']

/** The text without any of it; empty where what people said stands in it. */
export function maskForbidden(text: string): string {
  if (findForbidden(text).some((kind) => wholeKinds.includes(kind))) return ''
  // Ids stand aside while the rest is masked.
  const ids: string[] = []
  let masked = text.replaceAll('\u0000', '').replace(ownIds, (id) => `\u0000${ids.push(id) - 1}\u0000`)
  for (const { shape } of forbiddenShapes) masked = masked.replace(shape, '•••')
  // eslint-disable-next-line no-control-regex
  return masked.replace(/\u0000(\d+)\u0000/g, (_, index: string) => ids[Number(index)] ?? '')
}

/** The same for a page: what is found there never leaves the browser. */
export function forbiddenAsData(): { readonly ids: string; readonly shapes: readonly (readonly string[])[] } {
  return {
    ids: ownIds.source,
    shapes: forbiddenShapes.map(({ kind, shape }) => [kind, shape.source, shape.flags]),
  }
}
