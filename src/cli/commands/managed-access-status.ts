import { checkReadiness, type ReadinessDeps } from '../../accounts/managed-access/managed-readiness.ts'
import { isManagedOn } from '../../domain/managed-access.ts'
import type { Command } from '../command.ts'
import { writeTable } from '../terminal/table.ts'

export const managedAccessStatus: Command = {
  name: 'managed-access status',
  summary: 'Show whether managed access is on, and run its three checks now.',
  arguments: [],
  options: [],
  example: 'managed-access status',
  run: (invocation) =>
    invocation.withStore(async ({ config, audit, managed, proveQuotas }) => {
      const store: ReadinessDeps['store'] = {
        managedAccess: () => managed.store.managedAccess(),
        proveAudit: (record) => audit.proveAudit(record),
      }
      const readiness = await checkReadiness({ store, proveQuotas, clock: invocation.ports.clock }, 'always')
      const names = new Set(config.backends.filter((backend) => backend.managed).map(({ provider }) => provider.name))
      const providers = [...names].map((provider) => ({
        provider,
        resaleRecorded: readiness.providers.includes(provider),
        on: isManagedOn(readiness, provider),
      }))
      const say = (holds: boolean, good: string, bad: string): string => (holds ? good : bad)
      return {
        text: writeTable([
          ['CHECK', 'STATUS'],
          ['switch', say(readiness.switchedOn, 'on', 'off')],
          ['durable quotas', say(readiness.durableQuotas, 'proven', 'NOT proven')],
          ['durable audit events', say(readiness.durableAudit, 'proven', 'NOT proven')],
          ...providers.map(({ provider, resaleRecorded, on }) => [
            `resale controls of ${provider}`,
            `${say(resaleRecorded, 'recorded', 'NOT recorded')}: managed access is ${say(on, 'on', 'off')}`,
          ]),
        ]),
        json: { ...readiness, providers },
        talk:
          providers.length === 0
            ? ['The configuration has no managed backends, so managed access serves no accounts.']
            : [`Next: ${invocation.command('managed-access requests')}`],
      }
    }),
}
