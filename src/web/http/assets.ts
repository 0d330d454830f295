import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { namesEtag } from '../../runtime/etag.ts'

const contentTypes = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const
/** Scripts come after the scripts they import. */
const names = [
  'style.css',
  'islands.js',
  'icon.svg',
  'playground.css',
  'playground-make.js',
  'playground-code.js',
  'playground-fields.js',
  'playground-markdown.js',
  'playground-answer.js',
  'playground-fusion.js',
  'playground-trail.js',
  'playground.js',
] as const
export type AssetName = (typeof names)[number]

interface Asset {
  readonly url: string
  readonly etag: string
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly zipped: Uint8Array<ArrayBuffer>
}

/** All static files. Their URLs contain a content hash. */
interface Assets {
  readonly byName: ReadonlyMap<string, Asset>
  readonly byUrl: ReadonlyMap<string, Asset>
}

let loadedAssets: Assets | undefined

/**
 * Reads all static files, once. Not while this module is evaluated, because Node never evaluates a module again that
 * failed. @throws the system's error if one cannot be read; the next call tries again
 */
export function loadAssets(): Assets {
  return (loadedAssets ??= readAssets())
}

function readAssets(): Assets {
  const byName = new Map<string, Asset>()
  for (const name of names) byName.set(name, read(name, byName))
  return { byName, byUrl: new Map(Array.from(byName.values(), (asset) => [asset.url, asset])) }
}

/** The URL of a static file. */
export function assetUrl(name: AssetName): string {
  return find(name, loadAssets().byName).url
}

/** Serves a static file, compressed if the browser accepts gzip; undefined if the path is unknown. */
export function answerAsset(path: string, headers: Headers): Response | undefined {
  const asset = loadAssets().byUrl.get(path)
  if (asset === undefined) return undefined
  const common = {
    'Cache-Control': 'public, max-age=31536000, immutable',
    ETag: asset.etag,
    Vary: 'Accept-Encoding',
  }
  if (namesEtag(headers.get('if-none-match'), asset.etag)) return new Response(null, { status: 304, headers: common })
  const takesGzip = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
  return new Response(takesGzip ? asset.zipped : asset.bytes, {
    headers: { ...common, 'Content-Type': asset.type, ...(takesGzip && { 'Content-Encoding': 'gzip' }) },
  })
}

function find(name: string, assets: ReadonlyMap<string, Asset>): Asset {
  const asset = assets.get(name)
  if (asset === undefined) throw new Error(`the file ${name} is not loaded, or not yet`)
  return asset
}

/** Rewrites the plain file names in script imports to their hashed URLs. */
function read(name: AssetName, before: ReadonlyMap<string, Asset>): Asset {
  const text = readFileSync(new URL(`../assets/${name}`, import.meta.url), 'utf8')
  const placed = text.replaceAll(
    /(?<=^import [^']{1,200} from ')\.\/([\w-]+\.js)(?=')/gm,
    (_, other: string) => find(other, before).url,
  )
  const bytes = Uint8Array.from(Buffer.from(placed))
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16)
  const [stem, extension] = name.split('.') as [string, keyof typeof contentTypes]
  return {
    url: `/assets/${stem}.${hash}.${extension}`,
    etag: `"${hash}"`,
    type: contentTypes[extension],
    bytes,
    zipped: Uint8Array.from(gzipSync(bytes, { level: 9 })),
  }
}
