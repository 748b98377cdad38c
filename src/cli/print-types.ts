/**
 * The TypeScript types of a configuration, as `comity types` prints them: an interface `Api` for `comity/client` (src/client/api.ts), and the
 * types that it consists of. They import nothing, so that a page compiles neither the program nor TypeBox. The same configuration gives the
 * same text.
 */
import type { DeclaredAction } from '../config/actions.ts';
import { singular } from '../config/collections.ts';
import type { Configuration } from '../config/configuration.ts';
import { isNode, namedSchemas, type SchemaNode } from '../config/declared-schema.ts';
import type { Collection } from '../model/collection.ts';
import { fileRule } from '../model/file.ts';
import { type Output, uploadRule } from '../model/logic/actions.ts';

/** `input` leaves out what the server fills in; `patch` is an input of which no member is needed. */
type Use = 'output' | 'input' | 'patch';

/** A member of an object. */
type Member = {
  readonly name: string;
  readonly type: string;
  readonly optional: boolean;
  readonly about?: string;
};

/** @param codes with which hooks and other functions refuse, beside those of actions */
export function printTypes(configuration: Configuration, codes: Iterable<string>): string {
  const { title, collections, accounts, eventTypes, actions } = configuration;
  const printer = new Printer();
  const own = new Set(codes);
  // Those who may create an account write all of it.
  const users = { ...accounts.users, readOnly: new Map() };
  const all = new Map<string, Collection>([...collections, ['users', users]]);
  const described = [...all].map(([name, collection]) => {
    const ofCollection = actions.filter((action) => action.collection?.name === name);
    return entry(name, printer.collection(collection, ofCollection), collection.description);
  });
  const free = actions.filter(({ collection }) => collection === undefined);
  const events = [...eventTypes].map(([type, { schema, description }]) =>
    entry(
      type,
      schema === undefined ? anyObject : printer.within('Event', schema).typeOf(schema, 'output'),
      description,
    ),
  );
  for (const { codes: declared } of actions) for (const code of declared?.keys() ?? []) own.delete(code);
  const api = objectType([
    entry('collections', objectType(described)),
    ...(free.length === 0 ? [] : [entry('actions', objectType(free.map((each) => printer.action(each))))]),
    ...(events.length === 0 ? [] : [entry('events', objectType(events))]),
    ...(own.size === 0 ? [] : [entry('codes', unionOf([...own].sort().map((code) => literal(code))))]),
  ]);
  return [
    `/** The types of "${title.replaceAll('*/', '* /')}", printed by \`comity types\`: print them again after a change of the configuration. */`,
    '',
    '/** For `createClient<Api>(...)` of `comity/client`. */',
    `export interface Api ${api}`,
    ...printer.declared,
    ...([...all.values()].some(({ files }) => files !== undefined) ? [fileTypes] : []),
    '',
  ].join('\n');
}

function entry(name: string, type: string, about = '', optional = false): Member {
  return { name, type, optional, ...(about === '' ? {} : { about }) };
}

/** Types of the language that the text uses. */
const taken = ['Api', 'Blob', 'Uint8Array', 'FileValue', 'FileReference'];

/** Printed where a collection has files. */
const fileTypes = `
/** A file of a document. The octets are at \`url\`. */
export interface FileValue {
  id: string;
  name: string;
  type: string;
  bytes: number;
  digest: string;
  url: string;
  previews?: { [name: string]: string };
}

/** A file in a write: one that the document has, or a finished upload. */
export type FileReference = { id: string } | { upload: string };`;

class Printer {
  /** The declarations below the interface `Api`, in the order of their first use. */
  readonly declared: string[] = [];
  readonly #names = new Set(taken);

  collection(collection: Collection, actions: readonly DeclaredAction[]): string {
    const { name, schema, references, dependants, softDelete } = collection;
    const only = singular(name);
    const type = this.#name(only === name ? `${pascal(name)}Item` : pascal(only));
    const scope = this.within(type, schema);
    const times = ['createdAt', 'updatedAt'].map((each) => entry(each, 'string'));
    const members = [
      entry('id', 'string'),
      ...seen(scope.membersOf(schema, 'output'), collection),
      ...times,
      ...(softDelete ? [entry('deletedAt', 'string', '', true)] : []),
    ];
    this.#declare(type, members, collection.description);
    this.#declare(`${type}Create`, created(scope.membersOf(schema, 'input'), collection));
    this.#declare(`${type}Patch`, patched(scope.membersOf(schema, 'patch'), collection));
    const counts = [...new Set(dependants.map(({ countAs }) => literal(countAs)))];
    const referred = references.map(({ field, collection: to }) => entry(field, literal(to)));
    return objectType([
      entry('document', type),
      entry('create', `${type}Create`),
      entry('patch', `${type}Patch`),
      ...(referred.length === 0 ? [] : [entry('references', objectType(referred))]),
      ...(counts.length === 0 ? [] : [entry('counts', unionOf(counts))]),
      ...(actions.length === 0
        ? []
        : [entry('actions', objectType(actions.map((each) => this.action(each))))]),
    ]);
  }

  action({ name, on, collection, method, pattern, input, output, codes, summary }: DeclaredAction): Member {
    const owner = this.#name(`${pascal(collection?.name ?? '')}${pascal(name)}`);
    const above = collection === undefined ? '' : `/${collection.name}${on === 'member' ? '/{id}' : ''}`;
    return entry(
      name,
      objectType([
        ...(on === 'base' ? [] : [entry('on', literal(on))]),
        entry('route', literal(`${method} ${pattern.slice(above.length)}`)),
        ...(input === undefined
          ? []
          : [entry('input', this.within(`${owner}Input`, input).typeOf(input, 'input'))]),
        ...(output === undefined ? [] : [entry('output', this.#outputType(owner, output))]),
        ...(codes === undefined || codes.size === 0
          ? []
          : [entry('codes', unionOf([...codes.keys()].map(literal)))]),
      ]),
      summary,
    );
  }

  /** @param owner begins the names of types that the schema refers to */
  within(owner: string, root: object): Scope {
    return new Scope(root as SchemaNode, (name) => {
      const type = this.#name(`${owner}${pascal(name)}`);
      return [type, (printed) => void this.declared.push('', `export type ${type} = ${printed};`)];
    });
  }

  #outputType(owner: string, output: Exclude<DeclaredAction['output'], undefined>): string {
    if (!isAnswer(output)) return this.within(`${owner}Output`, output).typeOf(output, 'output');
    const { kind, mediaType } = output;
    const isText = kind === 'text' || (kind === 'stream' && mediaType.startsWith('text/'));
    return kind === 'redirect' || isText ? 'string' : 'Uint8Array';
  }

  #declare(type: string, members: readonly Member[], about = ''): void {
    this.declared.push(
      '',
      ...comment(about),
      `export interface ${type} ${objectType(members, { isOpen: true })}`,
    );
  }

  #name(wanted: string): string {
    let name = wanted;
    for (let number = 2; this.#names.has(name); number += 1) name = `${wanted}${number}`;
    for (const suffix of ['', 'Create', 'Patch']) this.#names.add(`${name}${suffix}`);
    return name;
  }
}

/** A schema of an application is of JSON, and has no `kind`. */
function isAnswer(output: object): output is Output {
  return 'kind' in output && 'mediaType' in output;
}

/** A hook of reads may leave out any member, and callers who may not see one get none. */
function seen(members: readonly Member[], { hidden, hooks, computed }: Collection): readonly Member[] {
  const isLoose = hooks?.afterRead !== undefined;
  return members.map((member) =>
    // Documents from before the declaration of a computed field are without it until they are written.
    isLoose || hidden.has(member.name) || computed?.has(member.name) === true
      ? { ...member, optional: true }
      : member,
  );
}

/** Members that the server sets are in no input; those that it fills in for some callers may be left out. */
function created(members: readonly Member[], collection: Collection): readonly Member[] {
  const { readOnly, hidden, tenantField } = collection;
  return settable(members, collection).map((member) =>
    readOnly.has(member.name) || hidden.has(member.name) || member.name === tenantField
      ? { ...member, optional: true }
      : member,
  );
}

/** A patch has no member that is fixed at creation. */
function patched(members: readonly Member[], collection: Collection): readonly Member[] {
  return settable(members, collection).filter(({ name }) => !collection.unpatchable.has(name));
}

function settable(members: readonly Member[], { computed, stamp }: Collection): readonly Member[] {
  return members.filter(({ name }) => computed?.has(name) !== true && stamp?.has(name) !== true);
}

/** Makes the name of a type, and gives back how the type is declared. */
type DeclareType = (name: string) => readonly [type: string, declare: (printed: string) => void];

/** A declared schema with the schemas that its references name. */
class Scope {
  readonly #named: ReadonlyMap<string, unknown>;
  readonly #declareType: DeclareType;
  readonly #types = new Map<string, string>();

  constructor(root: SchemaNode, declareType: DeclareType) {
    this.#named = namedSchemas(root);
    this.#declareType = declareType;
  }

  membersOf(schema: object, use: Use): readonly Member[] {
    const { properties, required } = schema as SchemaNode;
    const needed: readonly unknown[] = Array.isArray(required) ? required : [];
    return Object.entries(isNode(properties) ? properties : {}).map(([name, part]) => {
      const hasDefault = isNode(part) && Object.hasOwn(part, 'default');
      const mayBeAbsent = !needed.includes(name) || (use !== 'output' && hasDefault);
      const type = this.typeOf(part, use);
      const isRemovable = use === 'patch' && mayBeAbsent;
      const about = isNode(part) && typeof part.description === 'string' ? part.description : '';
      return entry(
        name,
        isRemovable ? unionOf([type, 'null']) : type,
        use === 'output' ? about : '',
        mayBeAbsent || use === 'patch',
      );
    });
  }

  typeOf(schema: unknown, use: Use): string {
    if (schema === false) return 'never';
    if (!isNode(schema)) return 'unknown';
    if (typeof schema.$ref === 'string') return this.#referred(schema.$ref, use);
    if (uploadRule(schema) !== undefined) return 'Blob';
    if (fileRule(schema) !== undefined) return use === 'output' ? 'FileValue' : 'FileReference';
    if ('const' in schema) return literal(schema.const);
    if (Array.isArray(schema.enum)) return unionOf(schema.enum.map(literal));
    // A patch merges objects; an alternative is given as a whole.
    const whole = use === 'patch' ? 'input' : use;
    const parts = [
      ...(Array.isArray(schema.allOf) ? schema.allOf.map((part) => this.typeOf(part, use)) : []),
      ...[schema.anyOf, schema.oneOf].flatMap((list) =>
        Array.isArray(list) ? [unionOf(list.map((part) => this.typeOf(part, whole)))] : [],
      ),
    ];
    const isBare = parts.length > 0 && schema.properties === undefined;
    if (!isBare) parts.unshift(this.#plain(schema, use));
    return parts.length === 1 ? (parts[0] ?? 'unknown') : parts.map(bracketed).join(' & ');
  }

  #plain(schema: SchemaNode, use: Use): string {
    const types = [schema.type].flat().filter((type) => typeof type === 'string');
    if (types.length > 1) return unionOf(types.map((type) => this.#plain({ ...schema, type }, use)));
    switch (types[0] ?? (isNode(schema.properties) ? 'object' : undefined)) {
      case 'string':
        return 'string';
      case 'number':
      case 'integer':
        return 'number';
      case 'boolean':
        return 'boolean';
      case 'null':
        return 'null';
      case 'array':
        return this.#array(schema, use === 'patch' ? 'input' : use);
      case 'object':
        return this.#object(schema, use);
      default:
        return 'unknown';
    }
  }

  #array({ items, prefixItems }: SchemaNode, use: Use): string {
    const tuple = Array.isArray(items) ? items : prefixItems;
    if (Array.isArray(tuple)) return `[${tuple.map((item) => this.typeOf(item, use)).join(', ')}]`;
    return `${bracketed(this.typeOf(items, use))}[]`;
  }

  #object(schema: SchemaNode, use: Use): string {
    const members = this.membersOf(schema, use);
    const { additionalProperties, patternProperties } = schema;
    const others = isNode(patternProperties) ? Object.values(patternProperties) : [];
    if (additionalProperties !== undefined && additionalProperties !== false)
      others.push(additionalProperties);
    if (members.length > 0) return objectType(members, others.length === 0 ? {} : { others: 'unknown' });
    if (others.length === 0) return isNode(schema.properties) ? 'Record<string, never>' : anyObject;
    const types = others.map((part) => this.typeOf(part, use === 'patch' ? 'input' : use));
    return objectType([], { others: unionOf(types) });
  }

  /** A type of its own, which may contain itself. */
  #referred(reference: string, use: Use): string {
    const known = this.#types.get(`${use} ${reference}`);
    if (known !== undefined) return known;
    const [type, declare] = this.#declareType(
      `${reference.replaceAll(notInName, '-')}${use === 'output' ? '' : `-${use}`}`,
    );
    this.#types.set(`${use} ${reference}`, type);
    declare(this.typeOf(this.#named.get(reference), use));
    return type;
  }
}

const notInName = /[^A-Za-z0-9]+/g;
const anyObject = '{ [name: string]: unknown }';
const bareName = /^[A-Za-z_$][\w$]*$/;
const wordBoundary = /[^A-Za-z0-9]+/;
const aboutCharactersMax = 300;
const shortColumnsMax = 55;
const unionColumnsMax = 75;

type ObjectForm = {
  /** The type of further members. */
  readonly others?: string;
  /** Each member in a line, however short they are. */
  readonly isOpen?: true;
};

function objectType(members: readonly Member[], { others, isOpen }: ObjectForm = {}): string {
  const lines = members.map(({ name, type, optional }) => {
    const written = bareName.test(name) ? name : literal(name);
    return `${written}${optional ? '?' : ''}:${broken(type)};`;
  });
  if (others !== undefined) lines.push(`[name: string]: ${others};`);
  if (lines.length === 0) return '{}';
  const isShort =
    isOpen === undefined &&
    members.every(({ about }) => about === undefined) &&
    lines.every((line) => !line.includes('\n')) &&
    lines.join(' ').length <= shortColumnsMax;
  if (isShort) return `{ ${lines.join(' ').slice(0, -1)} }`;
  const whole = lines.flatMap((line, index) => [...comment(members[index]?.about ?? ''), line]);
  return `{\n${whole.join('\n').replaceAll(lineStart, '  ')}\n}`;
}

/** A long union has a line for each alternative. */
function broken(type: string): string {
  const isPlain = !type.includes('\n') && !type.includes('(') && !type.includes('{');
  return isPlain && type.length > unionColumnsMax ? `\n  | ${type.replaceAll(' | ', '\n  | ')}` : ` ${type}`;
}

const lineStart = /^(?=.)/gm;

function comment(about: string): readonly string[] {
  const text = about.replaceAll(/\s+/g, ' ').trim().replaceAll('*/', '* /');
  if (text === '') return [];
  const shown = text.length > aboutCharactersMax ? `${text.slice(0, aboutCharactersMax)}…` : text;
  return [`/** ${shown} */`];
}

function unionOf(types: readonly string[]): string {
  const each = [...new Set(types)];
  if (each.includes('unknown')) return 'unknown';
  return each.length === 0 ? 'never' : each.join(' | ');
}

function bracketed(type: string): string {
  return type.includes(' | ') || type.includes(' & ') ? `(${type})` : type;
}

/** A type of one value. */
function literal(value: unknown): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  return objectType(Object.entries(value).map(([name, part]) => entry(name, literal(part))));
}

function pascal(name: string): string {
  const words = name.split(wordBoundary).filter((word) => word !== '');
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}
