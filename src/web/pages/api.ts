import type { PageRoute } from '../http/route.ts'
import { jsonAnswer } from '../http/text-answer.ts'

export const apiRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/openapi.json', access: 'public', handle: ({ deps }) => jsonAnswer(deps.openApi) },
]
