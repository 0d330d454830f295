import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const contentTypes = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const
const names = ['style.css', 'islands.js', 'icon.svg'] as const
export type AssetName = (typeof names)[number]

interface Asset {
  readonly url: string
  readonly etag: string
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly zipped: Uint8Array<ArrayBuffer>
}

/** Every file that pages load, read once at the start; its name in URLs changes with its content. */
const assets: Readonly<Record<AssetName, Asset>> = {
  'style.css': load('style.css'),
  'islands.js': load('islands.js'),
  'icon.svg': load('icon.svg'),
}
const byUrl = new Map(Object.values(assets).map((asset) => [asset.url, asset]))

/** Where a page finds one of our files. */
export function assetUrl(name: AssetName): string {
  return assets[name].url
}

/** A file of ours, zipped where the browser takes that; undefined where there is none of that path. */
export function answerAsset(path: string, headers: Headers): Response | undefined {
  const asset = byUrl.get(path)
  if (asset === undefined) return undefined
  const common = {
    'Cache-Control': 'public, max-age=31536000, immutable',
    ETag: asset.etag,
    Vary: 'Accept-Encoding',
  }
  if (headers.get('if-none-match') === asset.etag) return new Response(null, { status: 304, headers: common })
  const takesGzip = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
  return new Response(takesGzip ? asset.zipped : asset.bytes, {
    headers: { ...common, 'Content-Type': asset.type, ...(takesGzip && { 'Content-Encoding': 'gzip' }) },
  })
}

function load(name: AssetName): Asset {
  const bytes = Uint8Array.from(readFileSync(new URL(`./assets/${name}`, import.meta.url)))
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
