import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classifyAnswerError, classifyRejection } from '../../src/formats/answer-faults.ts'

const nested = (message: string, more: object = {}): object => ({ error: { message, ...more } })
const detail = (...fields: string[]): object => ({
  detail: fields.map((field) => ({
    type: 'extra_forbidden',
    loc: ['body', field],
    msg: 'Extra inputs are not permitted',
    input: 'x',
  })),
})
const invalid = { type: 'invalid_request_error', param: null, code: null }
const badRequest = { type: 'BadRequestError', param: null, code: 400 }

/** Rejections as these servers write them. */
const tooLong: readonly (readonly [string, number, object])[] = [
  [
    'llama-server',
    400,
    nested('request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it', {
      code: 400,
      type: 'exceed_context_size_error',
      n_prompt_tokens: 5000,
      n_ctx: 4096,
    }),
  ],
  [
    'an older llama-server',
    400,
    nested('the request exceeds the available context size. try increasing the context size or enable context shift', {
      code: 400,
      type: 'invalid_request_error',
    }),
  ],
  [
    'vLLM',
    400,
    nested(
      "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages, 100 in the completion).",
      badRequest,
    ),
  ],
  [
    'OpenAI, of one request that is larger than a minute allows',
    429,
    nested('Request too large for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Requested 51240.', {
      code: 'rate_limit_exceeded',
      type: 'tokens',
    }),
  ],
  [
    'an older vLLM, without a nested error',
    400,
    { object: 'error', message: "This model's maximum context length is 4096 tokens.", ...badRequest },
  ],
  [
    'vLLM, of the answer',
    400,
    nested(
      "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 4096 tokens and your request has 7 input tokens (100000 > 4096 - 7).",
      badRequest,
    ),
  ],
  [
    'vLLM, of the answer, newer',
    400,
    nested('max_tokens=100000 cannot be greater than max_model_len=4096', badRequest),
  ],
  [
    'vLLM, of the decoder',
    400,
    nested('The decoder prompt (length 5000) is longer than the maximum model length of 4096.', badRequest),
  ],
  [
    'vLLM, newest',
    400,
    nested(
      "You passed 5001 input tokens and requested 1 output tokens. However, the model's context length is only 4096 tokens.",
      { ...badRequest, param: 'input_tokens' },
    ),
  ],
  [
    'LiteLLM',
    400,
    nested(
      'litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - the window is too small',
      { type: null, param: null, code: '400' },
    ),
  ],
  [
    'llama-cpp-python',
    400,
    nested("This model's maximum context length is 512 tokens. However, you requested 1000 tokens.", {
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    }),
  ],
  [
    'llama-cpp-python, as its own trouble',
    500,
    nested('Requested tokens (2071) exceed context window of 512', { type: 'internal_server_error', code: null }),
  ],
  ['Ollama', 400, nested('the input length exceeds the context length', invalid)],
  ['Ollama, newer', 400, nested('prompt too long; exceeded max context length by 12 tokens', invalid)],
  [
    'LM Studio',
    400,
    {
      error:
        'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens.',
    },
  ],
  [
    'Text Generation Inference',
    422,
    {
      error: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000',
      error_type: 'validation',
    },
  ],
  [
    'OpenAI',
    400,
    nested('Your input exceeds the context window of this model.', { ...invalid, code: 'context_length_exceeded' }),
  ],
  [
    'Anthropic',
    400,
    {
      type: 'error',
      ...nested('prompt is too long: 210000 tokens > 200000 maximum', { type: 'invalid_request_error' }),
    },
  ],
  [
    'Anthropic, of the answer',
    400,
    {
      type: 'error',
      ...nested('input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000', {
        type: 'invalid_request_error',
      }),
    },
  ],
  ['Bedrock', 400, { message: 'Input is too long for requested model.' }],
  [
    'Gemini',
    400,
    nested('The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).', {
      code: 400,
      status: 'INVALID_ARGUMENT',
    }),
  ],
  [
    'xAI',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 152000 tokens.",
    },
  ],
  [
    'Mistral',
    400,
    {
      object: 'error',
      message: 'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_prompt',
      param: null,
      code: '3051',
    },
  ],
  [
    'OpenRouter',
    400,
    nested("This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.", {
      code: 400,
    }),
  ],
  ['Groq', 400, nested('Please reduce the length of the messages or completion.', { ...invalid, param: 'messages' })],
  [
    'Groq, where a minute allows less than the request',
    413,
    nested('Request too large on tokens per minute (TPM): Limit 6000, Requested 8000', {
      type: 'tokens',
      code: 'rate_limit_exceeded',
    }),
  ],
]

test.each(tooLong)('%s reports that the context is too long', (_, status, body) => {
  expect(classifyRejection({ status }, JSON.stringify(body))).toMatchObject({
    outcome: 'context_too_long',
    blames: 'request',
  })
})

test.each([
  ['n_ctx', 400, tooLong[0]![2], 4096],
  ['its sentence', 400, tooLong[2]![2], 4096],
  [
    'no more than a sentence that repeats the request',
    400,
    nested("Bad: 'x maximum context length is 5 tokens'", badRequest),
    undefined,
  ],
])('the context window is read from %s', (_, status, body, windowTokens) => {
  const { rejection } = classifyRejection({ status }, JSON.stringify(body))
  expect(rejection?.windowTokens).toBe(windowTokens)
})

describe('a missing capability is neither the caller’s fault nor the backend’s', () => {
  test.each([
    [
      'llama-server without a projector',
      'images',
      500,
      nested('image input is not supported - hint: if this is unexpected, you may need to provide the mmproj', {
        code: 500,
        type: 'server_error',
      }),
    ],
    [
      'llama-server without sound',
      'audio',
      500,
      nested('audio input is not supported - hint: …', { code: 500, type: 'server_error' }),
    ],
    ['vLLM with a text model', 'images', 400, nested('tiny is not a multimodal model', badRequest)],
    ['vLLM with none allowed', 'images', 400, nested('At most 0 image(s) may be provided in one prompt.', badRequest)],
    [
      'vLLM without a tool parser',
      'tools',
      400,
      nested('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', badRequest),
    ],
    ['Ollama', 'tools', 400, nested('registry.ollama.ai/library/tiny:latest does not support tools', invalid)],
    [
      'Ollama, newer',
      'images',
      500,
      nested('this model is missing data required for image input', { type: 'api_error' }),
    ],
    ['OpenRouter', 'images', 404, nested('No endpoints found that support image input', { code: 404 })],
    ['OpenRouter', 'tools', 404, nested('No endpoints found that support tool use.', { code: 404 })],
    [
      'DeepSeek',
      'images',
      400,
      nested('Failed to deserialize: unknown variant `image_url`, expected `text`', {
        ...invalid,
        code: 'invalid_request_error',
      }),
    ],
    [
      'DeepSeek',
      'structured_outputs',
      400,
      nested('This response_format type is unavailable now', { ...invalid, code: 'invalid_request_error' }),
    ],
    ['LM Studio', 'structured_outputs', 400, { error: "'response_format.type' must be 'json_schema' or 'text'" }],
    [
      'Gemini',
      'images',
      400,
      nested('Image input modality is not enabled for models/gemma-3-1b-it', { code: 400, status: 'INVALID_ARGUMENT' }),
    ],
    [
      'OpenAI',
      'images',
      400,
      nested('Invalid content type. image_url is only supported by certain models.', {
        ...invalid,
        param: 'messages.[0].content.[1].type',
      }),
    ],
  ])('%s: %s', (_, lacks, status, body) => {
    expect(classifyRejection({ status }, JSON.stringify(body))).toMatchObject({
      outcome: 'not_capable',
      blames: 'request',
      rejection: { lacks: expect.arrayContaining([lacks]) },
    })
  })
})

test.each([
  [
    'OpenAI',
    404,
    nested('The model `x` does not exist or you do not have access to it.', {
      type: 'invalid_request_error',
      code: 'model_not_found',
    }),
  ],
  [
    'OpenAI, where the project may not',
    403,
    nested('Project `p` does not have access to model `x`', { type: 'invalid_request_error', code: 'model_not_found' }),
  ],
  [
    'LiteLLM',
    400,
    nested(
      '/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models for your key.',
      { type: 'invalid_request_error', param: 'model', code: '400' },
    ),
  ],
  [
    'an older LiteLLM',
    400,
    nested("400: {'error': '/chat/completions: Invalid model name passed in model=x'}", {
      type: 'None',
      param: 'None',
      code: '400',
    }),
  ],
  ['Ollama', 404, nested('model "x" not found, try pulling it first', { type: 'api_error', param: null, code: null })],
  ['vLLM', 404, nested('The model `x` does not exist.', { type: 'NotFoundError', param: 'model', code: 404 })],
  ['DeepSeek', 400, nested('Model Not Exist', { ...invalid, code: 'invalid_request_error' })],
  ['OpenRouter', 400, nested('x is not a valid model ID', { code: 400 })],
  ['Anthropic', 404, { type: 'error', ...nested('model: x', { type: 'not_found_error' }) }],
  [
    'Gemini',
    404,
    nested('models/x is not found for API version v1beta, or is not supported for generateContent.', {
      code: 404,
      status: 'NOT_FOUND',
    }),
  ],
  ['Azure', 404, nested('The API deployment for this resource does not exist.', { code: 'DeploymentNotFound' })],
  ['a server without that path', 404, { detail: 'Not Found' }],
])('%s does not know the model or the path: a configuration error', (_, status, body) => {
  expect(classifyRejection({ status }, JSON.stringify(body))).toMatchObject({
    outcome: 'not_found',
    blames: 'backend',
    status,
  })
})

describe('rejected optional fields', () => {
  test.each([
    ['Ollama', 400, nested('"tiny:latest" does not support thinking', invalid), 'reasoning_effort', true],
    [
      'Ollama, for a value',
      400,
      nested('think value "high" is not supported for this model', invalid),
      'reasoning_effort',
      true,
    ],
    [
      'OpenAI',
      400,
      nested("Unsupported parameter: 'reasoning_effort' is not supported with this model.", {
        ...invalid,
        param: 'reasoning_effort',
        code: 'unsupported_parameter',
      }),
      'reasoning_effort',
      true,
    ],
    [
      'OpenAI, nested',
      400,
      nested("Unsupported parameter: 'reasoning.effort' is not supported with this model.", {
        ...invalid,
        param: 'reasoning.effort',
        code: 'unsupported_parameter',
      }),
      'reasoning',
      true,
    ],
    [
      'OpenAI, for a value',
      400,
      nested("Unsupported value: 'temperature' does not support 0.5 with this model.", {
        ...invalid,
        param: 'temperature',
        code: 'unsupported_value',
      }),
      'temperature',
      false,
    ],
    ['OpenAI, without a code', 400, nested('Unrecognized request argument supplied: store', invalid), 'store', true],
    ['a strict Python server', 422, detail('reasoning_effort', 'parallel_tool_calls'), 'parallel_tool_calls', true],
    [
      'Mistral',
      422,
      { object: 'error', message: detail('service_tier'), type: 'invalid_request_error' },
      'service_tier',
      true,
    ],
    [
      'LiteLLM',
      400,
      nested(
        "litellm.UnsupportedParamsError: ollama does not support parameters: ['logprobs'], for model=x. To drop these, set `litellm.drop_params=True`",
        { type: 'None', param: null, code: '400' },
      ),
      'logprobs',
      true,
    ],
    ['Groq', 400, nested("property 'metadata' is unsupported", invalid), 'metadata', true],
    [
      'Anthropic',
      400,
      {
        type: 'error',
        ...nested('context_management: Extra inputs are not permitted', { type: 'invalid_request_error' }),
      },
      'context_management',
      true,
    ],
    [
      'Gemini',
      400,
      nested('Invalid JSON payload received. Unknown name "seed" at \'generation_config\': Cannot find field.', {
        code: 400,
        status: 'INVALID_ARGUMENT',
      }),
      'seed',
      true,
    ],
    [
      'transformers serve',
      422,
      { detail: "Unexpected keys in the request: {'stream_options'}" },
      'stream_options',
      true,
    ],
    [
      'xAI',
      400,
      {
        code: 'Client specified an invalid argument',
        error: 'Model grok-4 does not support parameter presence_penalty.',
      },
      'presence_penalty',
      true,
    ],
    [
      'OpenAI, for a mark inside the content',
      400,
      nested("Unknown parameter: 'input[3].content[0].prompt_cache_breakpoint'.", {
        ...invalid,
        param: 'input[3].content[0].prompt_cache_breakpoint',
        code: 'unknown_parameter',
      }),
      'prompt_cache_breakpoint',
      true,
    ],
    [
      'Anthropic, for a mark inside the content',
      400,
      { type: 'error', ...nested('messages.0.content.0.text.cache_control: Extra inputs are not permitted') },
      'cache_control',
      true,
    ],
    [
      'a strict Python server, for a mark inside the content',
      422,
      { detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0, 'content', 0, 'cache_control'], msg: 'x' }] },
      'cache_control',
      true,
    ],
    [
      'Anthropic, for a mark too many',
      400,
      { type: 'error', ...nested('A maximum of 4 blocks with cache_control may be provided. Found 5.') },
      'cache_control',
      false,
    ],
  ])('%s', (_, status, body, field, isGeneral) => {
    const fault = classifyRejection({ status }, JSON.stringify(body))
    expect(fault).toMatchObject({ outcome: 'rejected_content', blames: 'request', rejection: { isGeneral } })
    expect(fault.rejection?.fields).toContain(field)
  })

  test.each([
    [
      'a wrong value',
      nested("Invalid value: 'loud'. Supported values are: 'low' and 'high'.", {
        ...invalid,
        param: 'reasoning_effort',
        code: 'invalid_value',
      }),
    ],
    [
      'a rejection of tools, which are never omitted,',
      nested("Unknown parameter: 'tools'.", { ...invalid, param: 'tools', code: 'unknown_parameter' }),
    ],
    ['a word that is not a field', nested('The user message in store is not supported.', invalid)],
  ])('%s is not one', (_, body) => {
    expect(classifyRejection({ status: 400 }, JSON.stringify(body)).rejection?.fields).toBeUndefined()
  })
})

test.each([
  [
    'schema_invalid',
    500,
    nested('JSON schema conversion failed:\nUnrecognized schema', { code: 500, type: 'server_error' }),
  ],
  ['schema_invalid', 400, nested("Invalid schema for response_format 'x'", { ...invalid, param: 'response_format' })],
  ['image_unreadable', 400, nested('Could not process image', { type: 'invalid_request_error' })],
  [
    'tool_results',
    400,
    nested(
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
      invalid,
    ),
  ],
  [
    'content_filter',
    400,
    nested("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", {
      code: 'content_filter',
    }),
  ],
])('a violated rule is recognized: %s with %i', (rule, status, body) => {
  expect(classifyRejection({ status }, JSON.stringify(body))).toMatchObject({
    outcome: 'rejected_content',
    blames: 'request',
    rejection: { rule },
  })
})

test('unexplained errors remain the backend’s', () => {
  expect(classifyRejection({ status: 500 }, JSON.stringify(nested('CUDA out of memory', { code: 500 })))).toMatchObject(
    {
      outcome: 'server_error',
      blames: 'backend',
    },
  )
  expect(classifyRejection({ status: 503 }, JSON.stringify(nested('Loading model', { code: 503 })))).toMatchObject({
    outcome: 'server_error',
    blames: 'backend',
  })
})

test('an error inside an answer is classified by the same texts', () => {
  expect(
    classifyAnswerError({ message: "This model's maximum context length is 4096 tokens.", ...badRequest }).outcome,
  ).toBe('context_too_long')
  expect(classifyAnswerError({ message: 'image input is not supported', code: 500 })).toMatchObject({
    blames: 'request',
  })
})

test('the text of a rejection is never passed on', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(400, 404, 413, 422, 500, undefined),
      fc.oneof(
        fc.json(),
        fc
          .record({
            error: fc.dictionary(
              fc.constantFrom('code', 'type', 'param', 'message', 'detail', 'n_ctx'),
              fc.jsonValue(),
            ),
          })
          .map((value) => JSON.stringify(value)),
      ),
      (status, body) => {
        const fault = status === undefined ? classifyAnswerError(JSON.parse(body)) : classifyRejection({ status }, body)
        expect(
          Object.keys(fault.rejection ?? {}).every((key) =>
            ['lacks', 'isGeneral', 'fields', 'windowTokens', 'rule'].includes(key),
          ),
        ).toBe(true)
        expect(fault.message).toBe(fault.outcome)
      },
    ),
  )
})

test('the longest message takes linear time', () => {
  const timeOf = (chars: number): number => {
    const worst = JSON.stringify(nested(`${'reasoning_effort '.repeat(chars / 17)}not supported`))
    const best = [1, 2, 3, 4, 5].map(() => {
      const startedMs = performance.now()
      for (let round = 0; round < 20; round += 1) classifyRejection({ status: 400 }, worst)
      return performance.now() - startedMs
    })
    return Math.min(...best)
  }
  timeOf(3_200)
  // Reading the JSON is linear, the words are bounded: ten times the text is far from a hundred times the work.
  expect(timeOf(64_000)).toBeLessThan(Math.max(2, timeOf(6_400)) * 30)
})
