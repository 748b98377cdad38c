/**
 * The schemas of a collection, from its declaration: the served representation (§2.1), the input of POST and PUT, a
 * merge patch (RFC 7396), and a page of a list. Representations are one schema, whatever `fields` and `expand` ask for,
 * and none has the keyword `readOnly`: events send the same schema, where it would mean that a member is not sent.
 * Descriptions say what no keyword can: the bytes of an indexed text, restricted writing (`readOnly`), restricted
 * visibility (`hidden`), the origin of a value (`tenantField`). They do not say which callers the restrictions exempt:
 * that is the application's own affair.
 */
import { isNode, mapParts, plainSchema, withDefaults } from '../config/declared-schema.ts';
import type { CollectionNames, Item } from '../kernel/documentation.ts';
import type { Stamp } from '../model/collection.ts';
import { type Collection, tagFieldOf } from '../model/collection.ts';
import type { Scalar } from '../model/field.ts';
import { type Components, located } from './components.ts';
import { withFileSchemas } from './file-schemas.ts';
import { inputSchema, outputSchema } from './input-schemas.ts';
import { sortable } from './list-parameters.ts';
import { type Relating, relatedMembers } from './related-schemas.ts';

const time: Item = { type: 'string', format: 'date-time' };
const id: Item = {
  type: 'string',
  description: 'Assigned by the server, or by the client if PUT creates the resource.',
};

export function addResourceSchemas(relating: Relating, names: CollectionNames, components: Components): void {
  const { collection } = relating;
  const related = relatedMembers(relating);
  const bounded = withTextBounds(plainSchema(collection.schema), collection);
  const properties = withConduct(isNode(bounded.properties) ? bounded.properties : {}, collection);
  const as = (kind: 'shown' | 'given') =>
    presented(withFileSchemas(kind, properties, collection, components), collection);
  const declared = 'properties' in bounded ? { ...bounded, properties: as('shown') } : bounded;
  const required = Array.isArray(declared.required) ? (declared.required as readonly string[]) : [];
  const described = collection.description === '' ? {} : { description: collection.description };
  const whole = components.add(
    'schemas',
    names.singular,
    outputSchema({
      ...declared,
      ...described,
      ...presentedWhole(collection),
      properties: {
        id,
        ...located(as('shown'), names.singular),
        createdAt: time,
        updatedAt: time,
        ...(collection.softDelete
          ? { deletedAt: { ...time, description: 'Only in the response to the deletion.' } }
          : {}),
        [tagFieldOf(collection).name]: {
          type: 'string',
          description: 'The entity tag; only where `fields` names it.',
        },
      },
      required: ['id', ...alwaysSeen(required, collection), 'createdAt', 'updatedAt'],
    }),
  );
  if (Object.keys(related).length > 0)
    components.add('schemas', `${names.singular}Related`, { type: 'object', properties: related });
  const given = 'properties' in declared ? { ...declared, properties: as('given') } : declared;
  const sendable = withoutServers(given, collection);
  components.add('schemas', `${names.singular}Input`, {
    description:
      'A complete resource. PUT removes members that it leaves out; it may also contain members that the server sets, with their current values.',
    ...closed(inputSchema(sent(sendable, collection))),
  });
  components.add('schemas', `${names.singular}Patch`, {
    ...patchSchema(closed(inputSchema(sendable)), collection.unpatchable),
    description:
      'A merge patch (RFC 7396): sets the members that it contains, removes those that are null and keeps the others.',
  });
  components.add('schemas', `${names.singular}List`, {
    description: 'A page of the list.',
    type: 'object',
    properties: {
      items: { type: 'array', items: whole },
      nextCursor: {
        type: ['string', 'null'],
        description: 'Cursor of the next page; null on the last page.',
      },
      ...related,
    },
    required: ['items', 'nextCursor'],
  });
}

/** What clients may send: the server alone sets computed members and stamps. */
function withoutServers(declared: Item, { computed, stamp }: Collection): Item {
  if ((computed?.size ?? 0) + (stamp?.size ?? 0) === 0 || !isNode(declared.properties)) return declared;
  const isServers = (name: string) => computed?.has(name) === true || stamp?.has(name) === true;
  const members = Object.entries(declared.properties).filter(([name]) => !isServers(name));
  const required = requiredOf(declared).filter((name) => !isServers(name));
  return { ...declared, properties: Object.fromEntries(members), required };
}

/** A member that some caller may leave out is not required; `x-required` says that those who may write it send it. */
function sent(declared: Item, collection: Collection): Item {
  const required = requiredOf(declared);
  const always = alwaysSent(required, collection);
  if (always.length === required.length) return declared;
  const { required: _required, properties = {}, ...rest } = declared;
  const byWriters = required.filter((name) => !always.includes(name) && name !== collection.tenantField);
  const members = Object.entries(properties as Item).map(([name, member]): [string, unknown] =>
    byWriters.includes(name) ? [name, { ...(member as Item), 'x-required': true }] : [name, member],
  );
  const given = { ...rest, properties: Object.fromEntries(members) };
  return always.length === 0 ? given : { ...given, required: always };
}

function requiredOf({ required }: Item): readonly string[] {
  return Array.isArray(required) ? required : [];
}

const fixedNote = 'Cannot be changed after creation; a patch may contain the current value.';

/** Every member is optional, at any depth; null is allowed for those that may be removed, or go back to their default. */
function patchSchema(schema: Item, unpatchable: ReadonlySet<string> = new Set()): Item {
  const { properties, required: _required, ...rest } = schema;
  if (!isNode(properties)) return schema;
  const required = requiredOf(schema);
  const members = Object.entries(properties).map(([name, declared]): [string, unknown] => {
    const member = isNode(declared) ? patchSchema(declared) : declared;
    const patched = required.includes(name) ? (member as Item) : { anyOf: [member, { type: 'null' }] };
    return [name, unpatchable.has(name) ? annotated(patched, [fixedNote]) : patched];
  });
  return { ...rest, properties: Object.fromEntries(members) };
}

/** Objects allow only declared properties unless they say otherwise, as the server's validation does (422). */
function closed(schema: Item, isPart = false): Item {
  const composed = 'allOf' in schema || ('properties' in schema && ('anyOf' in schema || 'oneOf' in schema));
  const copy = mapParts(schema, ['properties', 'items', ...alternatives], (part, keyword) =>
    closed(part, (isPart || composed) && alternatives.includes(keyword)),
  );
  const isOpen = 'additionalProperties' in schema || 'unevaluatedProperties' in schema;
  if (isPart || isOpen) return copy;
  if (composed) copy.unevaluatedProperties = false;
  else if ('properties' in schema || 'patternProperties' in schema) copy.additionalProperties = false;
  return copy;
}

const alternatives = ['anyOf', 'oneOf', 'allOf'];

const bytesPerCodePointMax = 4;
const shortFormats: ReadonlySet<unknown> = new Set(['date-time', 'date', 'time', 'uuid', 'ipv4', 'ipv6']);

/**
 * Describes the bounds of indexed texts in bytes (`textBounds` of model/collection.ts); JSON Schema counts code points.
 * @param schema plain JSON, not changed
 */
export function withTextBounds(schema: Item, { textBounds }: Pick<Collection, 'textBounds'>): Item {
  let result = schema;
  for (const { path, bytesMax } of textBounds) result = describeAt(result, path, bytesMax);
  return result;
}

function describeAt(schema: Item, path: readonly string[], bytesMax: number): Item {
  const [name, ...rest] = path;
  if (name === undefined) return isShort(schema, bytesMax) ? schema : described(schema, bytesMax);
  const { properties } = schema;
  if (!isNode(properties) || !isNode(properties[name])) return schema;
  return { ...schema, properties: { ...properties, [name]: describeAt(properties[name], rest, bytesMax) } };
}

function described(schema: Item, bytesMax: number): Item {
  const bound = `At most ${bytesMax} bytes of UTF-8, because it is indexed.`;
  const { description } = schema;
  return { ...schema, description: typeof description === 'string' ? `${description} ${bound}` : bound };
}

function isShort({ maxLength, format, enum: values, const: value, anyOf }: Item, bytesMax: number): boolean {
  if (typeof maxLength === 'number') return maxLength * bytesPerCodePointMax <= bytesMax;
  if (Array.isArray(anyOf)) {
    return anyOf.every((part: unknown) => isNode(part) && (part.type === 'null' || isShort(part, bytesMax)));
  }
  return values !== undefined || value !== undefined || shortFormats.has(format);
}

type Conduct = Pick<
  Collection,
  'readOnly' | 'hidden' | 'tenantField' | 'hooks' | 'computed' | 'stamp' | 'references'
>;

const computedNote = 'Computed from the other members: a change is answered 400.';

const stampNotes = {
  principal: 'Id of the principal',
  tenant: 'Tenant of the principal',
  time: 'Time',
} as const;

function stampNote({ value, on }: Stamp): string {
  const write = on === 'create' ? 'the creation' : 'the last write';
  return `${stampNotes[value]} of ${write}, set by the server: a change is answered 400.`;
}

const readOnlyNote = 'Read-only for most callers: a change is answered 400.';
const hiddenNote = 'Absent for callers who are not permitted to see it.';
const tenantNote =
  'Tenant of the resource: that of its creator, unless an administrator sets another. Cannot be changed after creation.';

/** @param properties of the declared schema, by name */
function withConduct(properties: Item, collection: Conduct): Item {
  const { readOnly, hidden, tenantField, computed, stamp, references } = collection;
  const noted = readOnly.size + hidden.size + (computed?.size ?? 0) + (stamp?.size ?? 0) + references.length;
  if (noted === 0 && tenantField === undefined) return properties;
  const referred = new Map(references.map((each) => [each.field, each.collection]));
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const stamped = stamp?.get(name);
      const notes = [
        ...(computed?.has(name) === true ? [computedNote] : []),
        ...(stamped === undefined ? [] : [stampNote(stamped)]),
        ...(readOnly.has(name) ? [readOnlyNote] : []),
        ...(hidden.has(name) ? [hiddenNote] : []),
        ...(name === tenantField ? [tenantNote] : []),
      ];
      const shown = notes.length === 0 ? schema : annotated(schema, notes);
      const target = referred.get(name);
      // The collection whose ids the member holds.
      return [name, target === undefined ? shown : { ...(shown as Item), 'x-references': target }];
    }),
  );
}

/**
 * The members in the order of their groups, with what people call them, a sentence about each, and how their values are shown. `x-help` has the
 * sentences of the declaration alone, where the description has more: people who fill in a form need no bytes of an index.
 */
function presented(properties: Item, { presentation, schema }: Collection): Item {
  const { labels = {}, help = {}, groups = {}, display = {} } = presentation ?? {};
  const names = new Set([...Object.values(groups).flat(), ...Object.keys(properties)]);
  return Object.fromEntries(
    [...names].map((name) => {
      if (!isNode(properties[name])) return [name, properties[name]];
      const { description, ...member } = properties[name];
      const declared: unknown = (schema.properties[name] as Item).description;
      const sentences = textsAmong([help[name], description]);
      const isNoted = description !== declared || 'default' in member;
      const shown = {
        ...member,
        ...(sentences === '' ? {} : { description: sentences }),
        ...(isNoted ? { 'x-help': textsAmong([help[name], declared]) } : {}),
        // Generated types would make a member with `default` one that is always there, so inputs have none.
        ...('default' in member ? { 'x-default': member.default } : {}),
        ...(labels[name] === undefined ? {} : { title: labels[name] }),
        ...(display[name] === undefined ? {} : { 'x-display': display[name] }),
      };
      return [name, shown];
    }),
  );
}

function textsAmong(values: readonly unknown[]): string {
  return values.filter((each) => typeof each === 'string').join(' ');
}

/** What people call a document, several of them and the parts of one, for those who draw pages of them. */
function presentedWhole({ presentation }: Collection): Item {
  if (presentation === undefined) return {};
  const { one, many, title, groups } = presentation;
  return {
    ...(one === undefined ? {} : { title: one }),
    'x-presentation': {
      ...(many === undefined ? {} : { many }),
      ...(title === undefined ? {} : { title }),
      groups: Object.entries(groups).map(([heading, members]) => ({ heading, members })),
    },
  };
}

/** A hook of reads may leave out any member. */
function alwaysSeen(required: readonly string[], { hidden, hooks }: Conduct): readonly string[] {
  if (hooks?.afterRead !== undefined) return [];
  return required.filter((name) => !hidden.has(name));
}

/** Required fields that every caller must send; the server fills in or keeps the others for some callers. */
function alwaysSent(required: readonly string[], collection: Conduct): readonly string[] {
  const { readOnly, hidden, tenantField } = collection;
  return required.filter((name) => !readOnly.has(name) && !hidden.has(name) && name !== tenantField);
}

function annotated(schema: unknown, notes: readonly string[]): Item {
  const item = schema as Item;
  const own = typeof item.description === 'string' ? [item.description] : [];
  return { ...item, description: [...own, ...notes].join(' ') };
}

// Examples from the declaration (`examples`: complete bodies), and others derived from them: the representation, a
// page, a patch, a query. test/openapi validates each against its schema.
//

type Examples = Readonly<Record<string, Item>>;

export type ResourceExamples = {
  readonly input: Examples;
  readonly representation: Examples;
  readonly mergePatch: Examples;
  readonly jsonPatch: Examples;
  readonly text: Examples;
};

const createdAt = '2026-08-01T09:30:00.000Z';
const ids = ['01k1jx7v2mh5s8b4c9d0e6f3ga', '01k1jx7v2mq7w1z5x3r8t2y6pb'];

export function resourceExamples(
  collection: Collection,
  names: CollectionNames,
  components: Components,
  idPrefix = '',
): ResourceExamples {
  const bodies = collection.examples;
  const represented = bodies.map((body, index) => ({
    id: `${idPrefix}${idOf(index)}`,
    ...withDefaults(collection.schema, body),
    createdAt,
    updatedAt: createdAt,
  }));
  const keep = (suffix: string, values: readonly unknown[]): Examples =>
    Object.fromEntries(
      values.map((value, index) => {
        const name = `${names.singular}${suffix}${index + 1}`;
        return [name, components.add('examples', name, { value })];
      }),
    );
  const [first] = bodies;
  const patched = first === undefined ? undefined : changeable(collection, first);
  const text = collection.textField === undefined ? undefined : first?.[collection.textField];
  return {
    input: keep('Input', bodies),
    representation: keep('', represented),
    mergePatch: patched === undefined ? {} : keep('Patch', [{ [patched[0]]: patched[1] }]),
    jsonPatch:
      patched === undefined
        ? {}
        : keep('JsonPatch', [[{ op: 'replace', path: `/${patched[0]}`, value: patched[1] }]]),
    text: typeof text === 'string' ? keep('Text', [text]) : {},
  };
}

/** A query that finds the first example, in JSON and in SQL. */
export function queryExamples(
  collection: Collection,
  names: CollectionNames,
  components: Components,
): { readonly json: Examples; readonly sql: Examples } {
  const [condition] = conditions(collection);
  const name = `${names.plural}Query`;
  const order = condition?.name ?? 'createdAt';
  const json = {
    ...(condition === undefined ? {} : { filter: { [condition.name]: condition.expected } }),
    sort: [`-${order}`],
    limit: 20,
  };
  const where = condition === undefined ? '' : ` WHERE ${identifier(condition.name)} ${condition.sql}`;
  const sql = `SELECT * FROM ${identifier(collection.name)}${where} ORDER BY ${identifier(order)} DESC LIMIT 20`;
  return {
    json: { [name]: components.add('examples', name, { value: json }) },
    sql: { [`${name}Sql`]: components.add('examples', `${name}Sql`, { value: sql }) },
  };
}

type Condition = { readonly name: string; readonly expected: unknown; readonly sql: string };

/** Conditions on numbers come first: a range shows more of the filter than an equality. */
function conditions(collection: Collection): readonly Condition[] {
  const [first = {}] = collection.examples;
  const found = sortable(collection.fields).flatMap(
    ({ name, path, type }): (Condition & { rank: number })[] => {
      const value = path.length === 1 ? first[path[0] ?? ''] : undefined;
      if (typeof value === 'number') return [{ name, expected: { lte: value }, sql: `<= ${value}`, rank: 0 }];
      if (typeof value === 'boolean') return [{ name, expected: value, sql: `= ${value}`, rank: 1 }];
      if (typeof value !== 'string' || type !== 'string') return [];
      return [{ name, expected: value, sql: `= ${literal(value)}`, rank: 2 }];
    },
  );
  return found.sort((a, b) => a.rank - b.rank);
}

/** A member of the body that a patch may set, with its value. */
function changeable(
  { unpatchable, references }: Collection,
  body: Readonly<Record<string, unknown>>,
): readonly [name: string, value: Scalar] | undefined {
  for (const [name, value] of Object.entries(body)) {
    const isReference = references.some(({ field }) => field === name);
    if (unpatchable.has(name) || isReference || pointerSyntax.test(name)) continue;
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      return [name, value];
  }
  return undefined;
}

/** Characters that a JSON Pointer escapes. */
const pointerSyntax = /[~/]/;

function idOf(index: number): string {
  return ids[index] ?? `${ids[0]?.slice(0, -4)}${String(index).padStart(4, '0')}`;
}

const bareIdentifier = /^[a-z_][a-z0-9_]*$/;

function identifier(name: string): string {
  return bareIdentifier.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
