/** What stands for a family where a name begins with no letter. */
const unnamed = 'unnamed'

/**
 * The family of a model from its name: the first word behind the last slash (`meta/llama-3-70b` is of `llama`). Models
 * of one family are taken to share their mistakes, so that their agreement counts for little.
 */
export function familyOf(model: string): string {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return /^[a-z]+/.exec(name)?.[0] ?? unnamed
}
