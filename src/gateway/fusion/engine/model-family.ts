/** The family of a model whose name starts with no letter. */
const unnamed = 'unnamed'

/**
 * Derives the family of a model from its name: the first word after the last slash (`meta/llama-3-70b` is of
 * `llama`). Models of one family are assumed to share their mistakes, so their agreement counts for little.
 */
export function familyOf(model: string): string {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return /^[a-z]+/.exec(name)?.[0] ?? unnamed
}
