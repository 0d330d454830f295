// node bin/run.mjs node scripts/price-table.ts: writes src/providers/prices/price-table.json, the published prices of the
// vendors that we know, from the package @pydantic/genai-prices. Run it after each upgrade of that package.
import { writeFileSync } from 'node:fs'
import { importedTable } from './price-table/import-table.ts'

const day = new Date().toISOString().slice(0, 10)
const { source, providers } = importedTable()
const lists = Object.entries(providers).map(
  ([id, models]) => `${JSON.stringify(id)}: [\n${models.map((model) => JSON.stringify(model)).join(',\n')}\n]`,
)
const text = `{"version": ${JSON.stringify(day)}, "source": ${JSON.stringify(source)}, "providers": {\n${lists.join(',\n')}\n}}\n`
writeFileSync(new URL('../src/providers/prices/price-table.json', import.meta.url), text)
