import { accountOption, type Command } from '../command.ts'
import { findRunning } from '../process/running-file.ts'

export const signInLink: Command = {
  name: 'sign-in-link',
  summary: 'Create a link that signs in to an account in the web app. It works once, within 15 minutes.',
  arguments: [],
  options: [accountOption],
  example: 'sign-in-link --account team-a',
  run: (invocation) =>
    invocation.withStore(async ({ config, account, signInLink: makeLink }) => {
      const owner = await account()
      const running = findRunning(config.dataDir)
      const link = await makeLink(owner.id, running?.appUrl ?? config.appUrl)
      return {
        text: link.reveal(),
        json: { account: owner.id, sign_in_url: link.reveal() },
        talk: [
          `The link signs in to account ${owner.name} once, within 15 minutes. Anyone who has it can use it.`,
          ...(running === undefined
            ? [`No service is running with this data folder. To start one: ${invocation.command('start')}`]
            : []),
        ],
      }
    }),
}
