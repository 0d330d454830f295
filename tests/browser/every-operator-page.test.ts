import { testEveryPageOf } from './page-rules.ts'

testEveryPageOf('operator')
