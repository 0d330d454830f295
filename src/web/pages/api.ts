import type { Route } from '../route.ts'
import { jsonAnswer } from '../text-answer.ts'

export const apiRoutes: readonly Route[] = [
  { method: 'GET', path: '/openapi.json', access: 'public', handle: ({ parts }) => jsonAnswer(parts.openApi) },
]
