/** Names of deployments at Azure contain no period: 4.1 is 41. */
const version = /gpt-(\d)\.?(\d{1,2})?/

/** The version of an OpenAI model as a number that can be compared: 5.06 for `gpt-5.6`, and 0 for other models. */
export function gptVersion(model: string): number {
  const [, major = '0', minor = '0'] = version.exec(model.toLowerCase()) ?? []
  return Number(major) + Number(minor) / 100
}
