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
import { idFault, idMessage } from '../../model/id.ts';
import { isMembers, type Members } from '../../model/json-value.ts';
import { instantKey, keptInstant, millisecondCharacters } from '../../model/timestamp.ts';
import type { Writer } from './closed-members.ts';
import { type Proposable, proposeCreate } from './propose.ts';
import { type HeldReference, referencesOf } from './representation.ts';

export type BulkCollection = Proposable &
  Pick<Collection, 'searchFields' | 'searchIndex' | 'references' | 'takenIds'>;

export type BulkWorkshop = { readonly collection: BulkCollection; readonly validator: Validator };

export type ImportOptions = {
  /** What happens to an item whose id exists. */
  readonly existing: 'refuse' | 'skip' | 'update';
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

export type BulkItem =
  | {
      readonly given: GivenMembers;
      readonly fields: {
        readonly text: string;
        readonly search: string | null;
        readonly references: readonly HeldReference[];
      };
    }
  | { readonly problem: Problem };

export type BulkContent = {
  readonly atomic: boolean;
  readonly import: ImportOptions | undefined;
  readonly items: readonly BulkItem[];
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
  const reading = isImport ? importing(workshop, writer, stamped) : { workshop, writer };
  const read = items.map((item: unknown) => readItem(reading, item, isImport ? computed : undefined));
  return { ok: true, bulk: { atomic, import: options.import, items: read } };
}

const memberNames: ReadonlySet<string> = new Set(['items', 'atomic', 'import']);
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

type Reading = { readonly workshop: BulkWorkshop; readonly writer: Writer };

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
