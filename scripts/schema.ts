// node bin/run.mjs node scripts/schema.ts: writes svc-router.schema.json from the schema of the configuration.
import { writeFileSync } from 'node:fs'
import { writeJsonSchema } from '../src/config/json-schema.ts'

writeFileSync(new URL('../svc-router.schema.json', import.meta.url), writeJsonSchema())
