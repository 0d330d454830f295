/** What breaks a line, turns the text around it the other way, or is half of a character. */
const unwriteable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
/** What nobody sees by itself; inside of names some of it is needed, as in emojis. */
const unseen = /[\p{Default_Ignorable_Code_Point}\p{Cf}\s]/gu

/** Whether a text that somebody chose can be seen, and stand in any line without spoiling what stands around it. */
export function isOneLine(text: string): boolean {
  return !unwriteable.test(text) && text.replace(unseen, '') !== ''
}
