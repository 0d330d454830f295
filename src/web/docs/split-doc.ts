import { headingId } from '../components/markdown.ts'
import type { Doc } from './doc.ts'

/**
 * Splits a long document into an index and one page per second-level heading. The index keeps the headings, so
 * links to a section of the original document still work.
 */
export function splitDoc(doc: Doc, firstSentence: (markdown: string) => string): readonly Doc[] {
  const [intro = '', ...sections] = doc.markdown.split(/^## +/m)
  const pages = sections.map((section): Doc => {
    const end = section.indexOf('\n')
    const title = section.slice(0, end)
    const text = section.slice(end + 1).trim()
    const variables = text.includes('SVC_ROUTER_')
      ? `The examples read \`SVC_ROUTER_BASE_URL\` and \`SVC_ROUTER_API_KEY\`. [${doc.title}](${doc.path}) shows how to set them.\n\n`
      : ''
    return {
      path: `${doc.path}/${headingId(title)}`,
      title,
      summary: firstSentence(text).replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, '$1'),
      // Rewrite links between sections into links between pages.
      markdown: `${variables}${text.replaceAll(/\]\(#([\w-]+)\)/g, `](${doc.path}/$1)`)}`,
    }
  })
  const rows = pages.map(({ path, title, summary }) => `## [${title}](${path})\n\n${summary}`)
  return [{ ...doc, markdown: [intro.trim(), ...rows].join('\n\n') }, ...pages]
}
