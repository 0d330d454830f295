const browsers = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Chrome|CriOS|Chromium|HeadlessChrome)\//],
  ['Safari', /\bSafari\//],
] as const
const systems = [
  ['Android', /\bAndroid\b/],
  ['iOS', /\b(?:iPhone|iPad)\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMacintosh\b/],
  ['Linux', /\bLinux\b/],
] as const

/** A description of a browser that its owner recognizes, such as `Firefox on Linux`. The user agent is not stored. */
export function describeBrowser(userAgent: string): string {
  const browser = browsers.find(([, shape]) => shape.test(userAgent))?.[0] ?? 'A browser'
  const system = systems.find(([, shape]) => shape.test(userAgent))?.[0]
  return system === undefined ? browser : `${browser} on ${system}`
}
