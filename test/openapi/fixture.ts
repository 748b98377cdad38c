/** Collections with every trait that the document depends on, and the document of them. */
import { Type } from 'typebox';
import { Compile } from 'typebox/schema';
import shop from '../../examples/shop/comity.config.ts';
import { resolveCollections } from '../../src/config/collections.ts';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { Collection } from '../../src/model/collection.ts';
import { type OpenApiOptions, type OpenApiVersion, openApiDocument } from '../../src/openapi/document.ts';
import { eventTypesOf } from '../../src/webhooks/sending/event-types/event-types.ts';
import type { RunningServer } from '../harness/running-server.ts';
import {
  type AccountsSetting,
  type ProgramSetting,
  type ReceivingSetting,
  resourcesOf,
} from './program-resources.ts';

export type Item = { readonly [name: string]: unknown };

/** What the shop has not: deprecation, nested objects, times, nullable fields, names of two words, disclosed existence. */
export const variety: ReadonlyMap<string, Collection> = resolveCollections({
  people: {
    schema: Type.Object({
      name: Type.String({ minLength: 1, default: 'Ada' }),
      address: Type.Optional(Type.Object({ city: Type.String(), zip: Type.Optional(Type.String()) })),
      bornAt: Type.Optional(Type.String({ format: 'date-time' })),
      height: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
      scores: Type.Optional(Type.Array(Type.Integer())),
      anything: Type.Optional(Type.Unknown()),
    }),
    access: { read: 'administrator', update: 'owner', delete: 'administrator' },
    conceal: false,
    deprecation: { since: '2026-01-01', sunset: '2027-01-01', link: 'https://example.com/people' },
    unique: ['name'],
    formats: ['json'],
    examples: [
      { name: 'Ada', address: { city: 'London' }, bornAt: '1815-12-10T00:00:00.000Z', height: null },
    ],
  },
  'order-lines': {
    schema: Type.Object({ amount: Type.Integer({ minimum: 1 }), limit: Type.Optional(Type.Number()) }),
    access: { read: 'public', create: 'public' },
  },
  errors: { schema: Type.Object({ text: Type.String() }) },
});

/** As the defaults of the settings have it, and one provider. */
export const accounts: AccountsSetting = { providers: ['example'] };

export const shopConfiguration = resolveConfiguration(shop);
export const shopCollections = shopConfiguration.collections;

/** As the defaults of the settings have it. */
export const shopReceiving: ReceivingSetting = { senders: shopConfiguration.senders };

/** How the program is set up: by default with default settings, accounts, a provider and sending, without receiving. */
export type DocumentSetting = Partial<Omit<ProgramSetting, 'collections'>> &
  Partial<Pick<OpenApiOptions, 'traceEnabled' | 'corsEnabled' | 'part'>>;

export function documentOf(
  collections: ReadonlyMap<string, Collection>,
  version: OpenApiVersion = '3.2',
  setting: DocumentSetting = {},
): Item {
  const declared = collections === shopCollections ? shopConfiguration.eventTypes : new Map();
  const program: ProgramSetting = {
    ...{ accounts, receiving: undefined, eventTypes: eventTypesOf({ collections, eventTypes: declared }) },
    ...setting,
    collections,
  };
  const document = openApiDocument({
    title: 'Test',
    apiVersion: '1',
    resources: resourcesOf(program),
    traceEnabled: setting.traceEnabled ?? false,
    corsEnabled: setting.corsEnabled ?? false,
    part: setting.part,
    verifiedEmailRequired: program.accounts?.verifiedEmailRequired ?? false,
    ...(program.eventTypes === undefined ? {} : { eventTypes: [...program.eventTypes.values()] }),
    version,
  });
  // What clients get is the JSON of it.
  return JSON.parse(JSON.stringify(document)) as Item;
}

/** The path items that a program serves, of both parts of its document. */
export async function servedPaths(
  program: Pick<RunningServer, 'send'>,
): Promise<Readonly<Record<string, Readonly<Record<string, Item>>>>> {
  const paths: Record<string, Record<string, Item>> = {};
  for (const part of ['application', 'operator']) {
    const served = (await program.send('GET', `/openapi.json?part=${part}`)).json();
    for (const [path, item] of Object.entries(served.paths as Record<string, Record<string, Item>>))
      paths[path] = { ...paths[path], ...item };
  }
  return paths;
}

export type Operation = { readonly path: string; readonly method: string; readonly item: Item };

const methods = ['get', 'post', 'put', 'patch', 'delete', 'query', 'x-query'];

export function operationsOf(document: Item): readonly Operation[] {
  return Object.entries(document.paths as Record<string, Item>).flatMap(([path, item]) =>
    methods.flatMap((method) => (method in item ? [{ path, method, item: item[method] as Item }] : [])),
  );
}

export function operation(document: Item, method: string, path: string): Item {
  const found = operationsOf(document).find((one) => one.path === path && one.method === method);
  if (found === undefined) throw new Error(`no ${method} ${path}`);
  return found.item;
}

/** True if a request needs no credential; the document says once which credentials the others take. */
export function isOpen(document: Item, operation: Item): boolean {
  const [first] = (operation.security ?? document.security) as readonly Item[];
  return JSON.stringify(first) === '{}';
}

/** Follows `$ref` as far as it goes. */
export function resolved(document: Item, item: unknown): Item {
  const { $ref } = item as { $ref?: string };
  if ($ref === undefined) return item as Item;
  let found: unknown = document;
  for (const part of $ref.split('/').slice(1)) found = (found as Item | undefined)?.[part];
  if (found === undefined) throw new Error(`${$ref} leads nowhere`);
  return resolved(document, found);
}

/** Responses of an operation by status: those of any request, and those that a header field asks for. */
export function responsesOf(
  document: Item,
  operation: Item,
): readonly (readonly [status: string, response: Item])[] {
  const asked = Object.values((operation['x-responses'] ?? {}) as Record<string, Item>);
  return [operation.responses as Item, ...asked]
    .flatMap((responses) => Object.entries(responses))
    .filter(([status]) => status !== 'default')
    .map(([status, response]) => [status, resolved(document, response)]);
}

/** The codes with which an operation can be refused, by status: its own, and those of its response `default`. */
export function errorsOf(document: Item, operation: Item): ReadonlyMap<number, readonly string[]> {
  const { default: refused } = operation.responses as Item;
  const general = resolved(document, refused)['x-errors'] ?? {};
  const found = new Map<number, readonly string[]>();
  for (const errors of [general, operation['x-errors']] as Record<string, readonly string[]>[])
    for (const [status, codes] of Object.entries(errors))
      found.set(Number(status), [...(found.get(Number(status)) ?? []), ...codes].sort());
  return found;
}

const compiled = new WeakMap<Item, Map<string, (value: unknown) => readonly string[]>>();

/** What is wrong with the value by the schema, whose references lead into the document; empty when it is sound. */
export function faults(document: Item, schema: unknown, value: unknown): readonly string[] {
  const known = compiled.get(document) ?? new Map<string, (value: unknown) => readonly string[]>();
  compiled.set(document, known);
  const key = JSON.stringify(schema);
  const check = known.get(key) ?? compile(document, schema as Item);
  known.set(key, check);
  return check(value);
}

function compile(document: Item, schema: Item): (value: unknown) => readonly string[] {
  const validator = Compile({ ...schema, components: { schemas: schemasBehind(document, schema) } });
  return (value) => {
    const [sound, errors] = validator.Errors(value);
    return sound ? [] : errors.map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
}

const schemaPath = '#/components/schemas/';

/** Those that the schema leads to: to compile it with all of them takes ten times as long. */
function schemasBehind(document: Item, schema: Item): Item {
  const { schemas } = document.components as { schemas: Item };
  const found: Record<string, unknown> = {};
  const follow = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, part] of Object.entries(value)) {
      const to = name === '$ref' && typeof part === 'string' ? part.slice(schemaPath.length) : undefined;
      if (to === undefined) follow(part);
      else if (!Object.hasOwn(found, to) && Object.hasOwn(schemas, to)) {
        found[to] = schemas[to];
        follow(schemas[to]);
      }
    }
  };
  follow(schema);
  return found;
}
