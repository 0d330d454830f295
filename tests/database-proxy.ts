import { openTcpLink, type TcpLink } from './tcp-link.ts'

/** A link to a database, for outages. */
export interface DatabaseProxy extends TcpLink {
  /** The URL of the database through the link. */
  readonly url: string
}

export async function proxyDatabase(target: string): Promise<DatabaseProxy> {
  const link = await openTcpLink(Number(new URL(target).port))
  const url = new URL(target)
  url.port = String(link.port)
  return Object.assign(link, { url: url.href })
}
