import { z } from 'zod'
import { configSchema } from './schema.ts'

/** The published JSON Schema of svc-router.yaml, as the text of its file, for completion in editors. */
export function writeJsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { target: 'draft-07', io: 'input', reused: 'inline' })
  return `${JSON.stringify({ ...schema, title: 'svc-router.yaml', description: 'Configuration of svc-router. Every setting is optional.' }, null, 2)}\n`
}
