/** The time limit of one answer. */
export const withinMs = 120_000

/** The tool of the cases that declare one. */
export const weatherTool = { name: 'get_weather', description: 'The weather of a city.' } as const

export const toolParameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
}

export const answerSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'integer' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
}
