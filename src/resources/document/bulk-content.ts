/**
 * Reads the content of a bulk request (§4.19): `{"items": [...], "atomic": true, "import": {...}}`. Each item is checked
 * as the content of a POST, and becomes the text of its fields or the reason why it is refused. A content thread does
 * this for long content, so everything here crosses to a thread and back.
 *
 * With `import`, an item is a document as Comity serves it: it may carry `id`, `createdAt`, `updatedAt` and its owner,
 * stamped fields, and computed ones, which are computed again. The owner is the member `owner`, or `$owner` if the collection declares
 * a field of that name.
 */
import type { FieldError, Problem } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Validator } from '../../kernel/content/validator.ts';
import { type Collection, ownerMember, searchTextOf } from '../../model/collection.ts';
import type { Field, Scalar } from '../../model/field.ts';
import { idFault, idMessage } from '../../model/id.ts';
import { isMembers, type Members } from '../../model/json-value.ts';
import { memberAt } from '../../model/matches.ts';
import { instantKey, keptInstant, millisecondCharacters } from '../../model/timestamp.ts';
import type { Writer } from './closed-members.ts';
import { type Proposable, proposeCreate, withInstants } from './propose.ts';
import { type HeldReference, referencesOf } from './representation.ts';

export type BulkCollection = Proposable &
  Pick<Collection, 'searchFields' | 'searchIndex' | 'references' | 'takenIds' | 'unique'>;

export type BulkWorkshop = { readonly collection: BulkCollection; readonly validator: Validator };

/** What happens to an item of an import whose id exists. */
export const existings = ['refuse', 'skip', 'update'] as const;

export type ImportOptions = {
  readonly existing: (typeof existings)[number];
  /** True if the writes append events. */
  readonly events: boolean;
};

/** Server-assigned members that an imported document carries; times in milliseconds. */
export type GivenMembers = {
  readonly id?: string;
  readonly createdAt?: number;
  readonly updatedAt?: number;
  readonly owner?: string | null;
};

/**
 * What an item is to the document that it names:
 *
 *   create   a new document: an existing one is refused
 *   replace  a PUT: it replaces the document, or creates it
 *   merge    a merge patch of a document that exists
 *   upsert   a merge patch of a document that exists, otherwise a new one
 */
export const bulkModes = ['create', 'replace', 'merge', 'upsert'] as const;

type BulkMode = (typeof bulkModes)[number];

export type BulkItem = (
  | {
      readonly given: GivenMembers;
      readonly fields: {
        readonly text: string;
        readonly search: string | null;
        readonly references: readonly HeldReference[];
      };
    }
  | { readonly problem: Problem }
) & {
  /** The content for the document that the item names, if there is one; the rest is of a new one. Absent: the item names none. */
  readonly change?: {
    readonly value: Members;
    /** The document's id, or its values of the key. */
    readonly names: string | readonly Scalar[];
  };
};

export type BulkContent = {
  readonly mode: BulkMode;
  /** The fields by whose values items name documents; undefined: by their ids. */
  readonly key: readonly Field[] | undefined;
  readonly atomic: boolean;
  readonly import: ImportOptions | undefined;
  readonly items: readonly BulkItem[];
};

export type Naming = Pick<BulkContent, 'mode' | 'key'>;

/** How the items of a request are to be written. */
export type How = Pick<BulkContent, 'mode' | 'key' | 'import'> & {
  /** An item that names a document may also have members that only the server sets otherwise: those of a new document. */
  readonly takesGiven?: boolean;
};

export type BulkRead =
  | { readonly ok: true; readonly bulk: BulkContent }
  | { readonly ok: false; readonly problem: Problem };

export type BulkReading = {
  readonly writer: Writer;
  readonly itemsMax: number;
  /** Names of computed fields, which an imported document may carry. */
  readonly computed: readonly string[];
  /** Names of stamped fields, which an imported document keeps. */
  readonly stamped: readonly string[];
};

export function readBulk(
  workshop: BulkWorkshop,
  content: unknown,
  { writer, itemsMax, computed, stamped }: BulkReading,
): BulkRead {
  if (!isMembers(content)) return refuse('validation_failed', '', 'must be an object with items');
  const unknown = Object.keys(content).find((name) => !memberNames.has(name));
  if (unknown !== undefined)
    return refuse('validation_failed', formatJsonPointer([unknown]), 'unknown property');
  const { items, atomic = true } = content as Readonly<Record<string, unknown>>;
  if (items === undefined) return refuse('field_missing', '/items', 'is required');
  if (!Array.isArray(items)) return refuse('validation_failed', '/items', 'must be an array');
  if (items.length > itemsMax)
    return refuse('validation_failed', '/items', `must have at most ${itemsMax} items, not ${items.length}`);
  if (typeof atomic !== 'boolean') return refuse('validation_failed', '/atomic', 'must be true or false');
  const options = readImport(content.import);
  if ('pointer' in options) return refuse('validation_failed', options.pointer, options.message);
  const isImport = options.import !== undefined;
  const naming = readNaming(workshop.collection, content);
  if ('pointer' in naming) return refuse('validation_failed', naming.pointer, naming.message);
  if (isImport && naming.mode !== 'create')
    return refuse('validation_failed', '/mode', 'cannot stand beside import, which has existing');
  const read = itemReader(workshop, { ...naming, import: options.import }, { writer, computed, stamped });
  return { ok: true, bulk: { ...naming, atomic, import: options.import, items: items.map(read) } };
}

/** Reads items one by one, as the request says that they are to be taken. */
export function itemReader(
  workshop: BulkWorkshop,
  how: How,
  { writer, computed, stamped }: Omit<BulkReading, 'itemsMax'>,
): (item: unknown) => BulkItem {
  const plain = { workshop, writer };
  const open = importing(workshop, writer, stamped);
  if (how.takesGiven === true) return (item) => readGivenNamed(plain, open, item, { how, computed, stamped });
  if (how.mode !== 'create')
    return (item) => readNamed(plain, item, how, (value) => readItem(plain, value, undefined));
  if (how.import === undefined) return (item) => readItem(plain, item, undefined);
  return (item) => readItem(open, item, computed);
}

const memberNames: ReadonlySet<string> = new Set(['items', 'atomic', 'import', 'mode', 'key']);

/** The members `mode` and `key`. */
export function readNaming(
  { unique }: Pick<Collection, 'unique'>,
  { mode = 'create', key }: { readonly mode?: unknown; readonly key?: unknown },
): Naming | FieldError {
  const known = bulkModes.find((each) => each === mode);
  if (known === undefined)
    return { pointer: '/mode', message: 'must be "create", "replace", "merge" or "upsert"' };
  if (key === undefined) return { mode: known, key };
  if (known === 'create')
    return { pointer: '/key', message: 'needs the mode "replace", "merge" or "upsert"' };
  const names: readonly unknown[] = Array.isArray(key) ? key : [key];
  if (names.length === 1 && names[0] === 'id') return { mode: known, key: undefined };
  const isNamed = (fields: readonly Field[]): boolean =>
    fields.length === names.length && fields.every(({ name }) => names.includes(name));
  const found = unique.findLast(isNamed);
  return found === undefined
    ? { pointer: '/key', message: 'must be "id", or the fields of an entry of unique' }
    : { mode: known, key: found };
}

/**
 * Reads an item of an administrator that may name a document that exists, and may have what only the server sets otherwise. A new document
 * takes that; one that exists keeps its own, so that an export can be imported although its times have passed.
 */
function readGivenNamed(
  plain: Reading,
  open: Reading,
  item: unknown,
  { how, computed, stamped }: Pick<BulkReading, 'computed' | 'stamped'> & { readonly how: Naming },
): BulkItem {
  const read = () => readItem(open, item, computed);
  if (!isMembers(item)) return read();
  const given = ['createdAt', 'updatedAt', ownerMember(plain.workshop.collection), ...computed, ...stamped];
  const rest: Members = { ...item };
  for (const name of how.key === undefined ? given : [...given, 'id']) delete rest[name];
  return readNamed(plain, rest, how, read);
}

/** Reads an item that may name a document that exists. @param read reads the document that it would create */
function readNamed(
  { workshop: { validator } }: Reading,
  item: unknown,
  { mode, key }: Naming,
  read: (value: unknown) => BulkItem,
): BulkItem {
  if (!isMembers(item)) return read(item);
  if (key === undefined) {
    const { id, ...value } = item;
    if (id === undefined && mode === 'merge') {
      const errors = [{ pointer: '/id', message: 'is required by the mode merge' }];
      return { problem: { code: 'validation_failed', errors } };
    }
    if (id === undefined) return read(item);
    if (typeof id !== 'string' || !id.isWellFormed() || id.includes('\0'))
      return { problem: { code: 'validation_failed', errors: [{ pointer: '/id', message: idMessage }] } };
    const created = read(value);
    const change = { value, names: id };
    return 'problem' in created
      ? { ...created, change }
      : { ...created, given: { ...created.given, id }, change };
  }
  const kept = withInstants(validator, item);
  const names = key.map(({ path }) => memberAt(kept, path) ?? null);
  const missing = key.filter((_, at) => names[at] === null || typeof names[at] === 'object');
  if (missing.length > 0) {
    const errors = missing.map(({ path }) => ({
      pointer: formatJsonPointer(path),
      message: 'is required by the key',
    }));
    return { problem: { code: 'validation_failed', errors } };
  }
  return { ...read(item), change: { value: item, names: names as readonly Scalar[] } };
}

const importNames: ReadonlySet<string> = new Set(['existing', 'events']);

function refuse(code: 'field_missing' | 'validation_failed', pointer: string, message: string): BulkRead {
  return { ok: false, problem: { code, errors: [{ pointer, message }] } };
}

function readImport(value: unknown): { readonly import: ImportOptions | undefined } | FieldError {
  if (value === undefined || value === false) return { import: undefined };
  if (value === true) return { import: { existing: 'refuse', events: true } };
  if (!isMembers(value)) return { pointer: '/import', message: 'must be true or an object' };
  const unknown = Object.keys(value).find((name) => !importNames.has(name));
  if (unknown !== undefined)
    return { pointer: formatJsonPointer(['import', unknown]), message: 'unknown property' };
  const { existing = 'refuse', events = true } = value;
  if (existing !== 'refuse' && existing !== 'skip' && existing !== 'update')
    return { pointer: '/import/existing', message: 'must be "refuse", "skip" or "update"' };
  if (typeof events !== 'boolean') return { pointer: '/import/events', message: 'must be true or false' };
  return { import: { existing, events } };
}

export type Reading = { readonly workshop: BulkWorkshop; readonly writer: Writer };

/** Stamped fields, which no other content may set, are open to an import. */
function importing(workshop: BulkWorkshop, writer: Writer, stamped: readonly string[]): Reading {
  const { closings } = writer;
  const readOnly = closings?.readOnly.filter(({ name }) => !stamped.includes(name)) ?? [];
  return {
    workshop: { ...workshop, collection: { ...workshop.collection, stamp: undefined } },
    writer: closings === undefined ? writer : { ...writer, closings: { ...closings, readOnly } },
  };
}

function readItem(
  { workshop: { collection, validator }, writer }: Reading,
  item: unknown,
  computed: readonly string[] | undefined,
): BulkItem {
  let given: GivenMembers = {};
  let value = item;
  if (computed !== undefined && isMembers(item)) {
    const taken = takeGiven(collection, item, computed);
    if (taken.errors.length > 0) return { problem: { code: 'validation_failed', errors: taken.errors } };
    given = taken.given;
    value = taken.rest;
  }
  const owned = given.owner === undefined ? writer : { ...writer, owner: given.owner };
  const proposed = proposeCreate(collection, validator, value, owned);
  if (!proposed.ok) return { problem: proposed.problem };
  const { fields } = proposed;
  const search = searchTextOf(collection, fields);
  const references = referencesOf(collection, fields);
  return { given, fields: { text: JSON.stringify(fields), search, references } };
}

type Taken = {
  readonly given: GivenMembers;
  readonly rest: Members;
  readonly errors: readonly FieldError[];
};

function takeGiven(collection: BulkCollection, item: Members, computed: readonly string[]): Taken {
  const errors: FieldError[] = [];
  const owner = ownerMember(collection);
  const rest: Members = { ...item };
  const given: { -readonly [Member in keyof GivenMembers]: GivenMembers[Member] } = {};
  if (rest.id !== undefined) {
    const message = typeof rest.id === 'string' ? idFault(collection, rest.id) : idMessage;
    if (message === undefined) given.id = rest.id as string;
    else errors.push({ pointer: '/id', message });
  }
  for (const name of ['createdAt', 'updatedAt'] as const) {
    const time = rest[name];
    if (time === undefined) continue;
    const ms = typeof time === 'string' ? millisecondsOf(time) : Number.NaN;
    if (!(ms >= 0)) errors.push({ pointer: `/${name}`, message: timeMessage });
    else given[name] = ms;
  }
  const named = rest[owner];
  if (named === null || (typeof named === 'string' && named !== '')) given.owner = named;
  else if (named !== undefined)
    errors.push({ pointer: formatJsonPointer([owner]), message: 'must be the id of an account, or null' });
  if (given.createdAt !== undefined && given.updatedAt !== undefined && given.updatedAt < given.createdAt)
    errors.push({ pointer: '/updatedAt', message: 'must not be before createdAt' });
  for (const name of ['id', 'createdAt', 'updatedAt', owner, ...computed]) delete rest[name];
  return { given, rest, errors };
}

const timeMessage = 'must be a time from 1970 on, to the millisecond, such as 2026-01-31T12:00:00.000Z';

/** NaN for what is no instant, or has more digits than a millisecond. */
function millisecondsOf(text: string): number {
  const kept = keptInstant(text);
  return kept !== undefined && instantKey(kept).length <= millisecondCharacters
    ? Date.parse(kept)
    : Number.NaN;
}
