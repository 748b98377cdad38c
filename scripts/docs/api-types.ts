/**
 * Renders dashboard/api-types.ts: the types of what the built-in resources serve, from the OpenAPI document of a program with
 * one collection. The dashboard takes its types from there alone, so a change of a schema that a page relies on fails to compile.
 *
 * Usage: npm run docs
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from 'typebox';
import { createComity } from '../../src/index.ts';

export const path = 'dashboard/api-types.ts';

/** What pages show in their own way; what these refer to comes with them. */
const roots = [
  'AccessReport',
  'Activity',
  'Attempt',
  'Backup',
  'Delivery',
  'Endpoint',
  'EndpointHealth',
  'EventType',
  'Hold',
  'ImportCounts',
  'Me',
  'Passkeys',
  'Program',
  'ReceivedMessage',
  'Recovery',
  'SecondFactor',
  'Sender',
  'SentRequest',
  'Session',
  'Setting',
  'StoreReport',
  'TotpEnrolment',
  'Version',
  'View',
];

type Schema = Readonly<Record<string, unknown>>;

const header = `/** Types of what the API serves, from its OpenAPI document. Rendered by scripts/docs/api-types.ts; \`npm run docs\` writes it. */`;

/** The whole file, with the final line break. */
export async function render(): Promise<string> {
  const schemas = await readSchemas();
  const pending = [...roots];
  const rendered = new Map<string, string>();
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (rendered.has(name)) continue;
    const schema = schemas[name];
    if (schema === undefined) throw new Error(`the document has no schema ${name}`);
    rendered.set(
      name,
      typeOf(schema, 1, (other) => pending.push(other)),
    );
  }
  const types = [...rendered].sort(([one], [other]) => (one < other ? -1 : 1));
  return `${header}\n${types.map(([name, text]) => `\nexport type ${name} = ${text};\n`).join('')}`;
}

async function readSchemas(): Promise<Readonly<Record<string, Schema>>> {
  const data = mkdtempSync(join(tmpdir(), 'comity-types-'));
  const comity = await createComity(
    { collections: { documents: { schema: Type.Object({ text: Type.String() }) } } },
    {
      COMITY_DATA: data,
      COMITY_LOG_LEVEL: 'error',
      COMITY_ADMIN_KEY: 'sk_of_a_program_that_writes_its_types',
    },
  );
  try {
    const schemas: Record<string, Schema> = {};
    for (const part of ['application', 'operator']) {
      const response = await comity.fetch(new Request(`http://localhost/openapi.json?part=${part}`));
      const document = (await response.json()) as { components: { schemas: Record<string, Schema> } };
      Object.assign(schemas, document.components.schemas);
    }
    return schemas;
  } finally {
    await comity.close();
    rmSync(data, { recursive: true, force: true });
  }
}

type Use = (name: string) => void;

function typeOf(schema: Schema, depth: number, use: Use): string {
  const { $ref, type } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? '';
    use(name);
    return name;
  }
  if ('const' in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices))
    return joined(
      choices.map((each) => typeOf(each as Schema, depth, use)),
      ' | ',
    );
  if (Array.isArray(schema.allOf))
    return joined(
      schema.allOf.map((each) => typeOf(each as Schema, depth, use)),
      ' & ',
    );
  const types = (Array.isArray(type) ? type : [type]) as readonly unknown[];
  return joined(
    types.map((each) => plainType(each, schema, depth, use)),
    ' | ',
  );
}

function plainType(type: unknown, schema: Schema, depth: number, use: Use): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `readonly (${typeOf((schema.items ?? {}) as Schema, depth, use)})[]`;
    case 'object':
      return objectType(schema, depth, use);
    default:
      return 'unknown';
  }
}

function objectType(schema: Schema, depth: number, use: Use): string {
  const members = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
  const { additionalProperties: rest } = schema;
  const others = typeof rest === 'object' && rest !== null ? typeOf(rest as Schema, depth, use) : 'unknown';
  if (members.length === 0) return `{ readonly [name: string]: ${others} }`;
  const required = new Set((schema.required ?? []) as readonly string[]);
  const pad = '  '.repeat(depth);
  const lines = members.map(([name, each]) => {
    const shown = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${pad}readonly ${shown}${required.has(name) ? '' : '?'}: ${typeOf(each, depth + 1, use)};`;
  });
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth - 1)}}`;
}

function joined(types: readonly string[], sign: string): string {
  return [...new Set(types)].join(sign);
}
