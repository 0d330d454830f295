import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { RunningService } from './running-service.ts'
import { startScriptedModel, type ScriptedModel } from './scripted-model.ts'

/** The running service with one scripted model as its only backend. */
export class ScriptedService implements AsyncDisposable {
  readonly service: RunningService
  readonly model: ScriptedModel

  private constructor(service: RunningService, model: ScriptedModel) {
    this.service = service
    this.model = model
  }

  static async start(
    format: ConversationFormatId,
    answer: Parameters<typeof startScriptedModel>[1],
    preset?: string,
  ): Promise<ScriptedService> {
    const model = await startScriptedModel(format, answer)
    return new ScriptedService(await RunningService.startWithProvider(model, format, preset), model)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    await this.model[Symbol.asyncDispose]()
  }
}
