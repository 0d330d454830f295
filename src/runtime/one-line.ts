import { isUnsafe } from './safe-text.ts'

/** Invisible characters. Names may contain some of them, as emojis do. */
const unseen = /[\p{Default_Ignorable_Code_Point}\p{Cf}\s]/gu

/** Whether a name is visible and cannot disturb the line in which it is displayed. */
export function isOneLine(text: string): boolean {
  return !isUnsafe(text) && text.replace(unseen, '') !== ''
}
