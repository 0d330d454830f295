import { describeConfig, plainConfig } from '../../config/describe.ts'
import type { Command } from '../command.ts'

export const check: Command = {
  name: 'check',
  summary:
    'Validate the configuration file and print its effective settings, with secrets masked. Settings declared with apply are not included.',
  arguments: [],
  needsCredentials: true,
  options: [],
  example: 'check --config ./svc-router.yaml',
  async run(invocation) {
    const config = invocation.load('pretend')
    return {
      text: describeConfig(config).trimEnd(),
      json: plainConfig(config),
      talk: [
        config.file === undefined
          ? 'There is no configuration file. These are the defaults.'
          : `${config.file} is valid.`,
        `Next: ${invocation.command('start')}`,
      ],
    }
  },
}
