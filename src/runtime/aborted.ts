/** The reason of signals that abort often: by default, each abort creates an error, which takes most of its time. */
export const aborted = new DOMException('This operation was aborted', 'AbortError')
