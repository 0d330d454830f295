import { adminOperations, type AdminOperation } from './admin-operations.ts'

/** The OpenAPI 3.1 document of the admin API, generated from its table. */
export function adminOpenApiDocument({
  appUrl,
  version,
}: {
  readonly appUrl: string
  readonly version: string
}): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const [id, operation] of Object.entries<AdminOperation>(adminOperations))
    (paths[operation.path] ??= {})[operation.method.toLowerCase()] = operationObject(id, operation)
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc-router admin API',
      version,
      description: 'Changes accounts, keys, budgets, plans, backends, and profiles. For operators only.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    externalDocs: { url: `${appUrl}/docs` },
    servers: [{ url: appUrl }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'From `svc-router admin-tokens create`, or the console.',
        },
      },
      schemas: { Error: errorSchema },
    },
  }
}

function operationObject(id: string, { summary, answer, scope, path, query = {}, body }: AdminOperation): object {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  const parameters = [
    ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries(query).map(([name, { description, ...schema }]) => ({ name, in: 'query', description, schema })),
  ]
  return {
    operationId: id,
    summary,
    description: `Needs a token with the scope \`${scope}\`.`,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.required.length > 0 || body.isSetting === true,
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: body.fields,
                  ...(body.required.length === 0 ? {} : { required: body.required }),
                  additionalProperties: body.isSetting === true,
                },
              },
            },
          },
        }),
    responses: {
      200: { description: answer, content: { 'application/json': { schema: { type: 'object' } } } },
      default: {
        description: 'The request was rejected, and nothing has changed.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  }
}

const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'request_id'],
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        request_id: { type: 'string' },
        problems: {
          type: 'array',
          items: {
            type: 'object',
            properties: { path: { type: 'string' }, message: { type: 'string' }, fix: { type: 'string' } },
          },
        },
      },
    },
  },
}
