import type { ErrorCode } from '../../domain/errors.ts'
import type { ErrorHelp } from './error-help-entry.ts'
import { accessHelp } from './help-access.ts'
import { requestHelp } from './help-requests.ts'
import { serviceHelp } from './help-service.ts'

/** One entry per error code; a missing code is a compile error. */
export const errorHelp: Readonly<Record<ErrorCode, ErrorHelp>> = { ...accessHelp, ...requestHelp, ...serviceHelp }
