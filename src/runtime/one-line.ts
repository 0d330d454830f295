import { isUnsafe } from './safe-text.ts'

/** What nobody sees by itself; inside of names some of it is needed, as in emojis. */
const unseen = /[\p{Default_Ignorable_Code_Point}\p{Cf}\s]/gu

/** Whether a text that somebody chose can be seen, and stand in any line without spoiling what stands around it. */
export function isOneLine(text: string): boolean {
  return !isUnsafe(text) && text.replace(unseen, '') !== ''
}
