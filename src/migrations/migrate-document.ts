/**
 * One document through the migrations of its collection: pure, and synchronous as `up` is. What `up` returns is taken as JSON, so that
 * nothing that is no value reaches the store, and is held to the present schema after the last migration.
 */

import { kindOf } from '../config/inspection.ts';
import type { DeclaredMigration, OldDocument } from '../config/migrations.ts';
import type { FieldError } from '../http/problem.ts';
import type { Validator } from '../kernel/content/validator.ts';
import type { Collection } from '../model/collection.ts';
import { equalJson, isMembers, type Members } from '../model/json-value.ts';
import { callAs } from '../observe/running-function.ts';
import { nextRow } from '../resources/collection/row.ts';
import { storedFields } from '../resources/document/propose.ts';
import { type HeldReference, referencesOf } from '../resources/document/representation.ts';
import type { NextRow, Row } from '../store/store.ts';

/** A stored document, and what the run knows of it. */
export type Candidate = Pick<Row, 'id' | 'doc' | 'owner' | 'createdAt' | 'updatedAt'> & {
  /** Last written before the run began: it is migrated even if it fits. */
  readonly isOlder: boolean;
};

/** Why a document cannot be migrated. */
export type DocumentFailure = {
  /** The migration whose function failed; undefined: its result does not fit. */
  readonly migration: string | undefined;
  /** JSON Pointer of the member; empty for the document. */
  readonly pointer: string;
  readonly message: string;
};

export type Migrated =
  | { readonly kind: 'stays' }
  | { readonly kind: 'changed'; readonly next: NextRow; readonly before: string }
  | { readonly kind: 'failed'; readonly failure: DocumentFailure };

/** What a collection's documents go through. */
export type Passage = {
  readonly collection: Collection;
  readonly validator: Validator;
  readonly migrations: readonly DeclaredMigration[];
  /** The result must fit the schema. False: other migrations of the collection follow. */
  readonly isLast: boolean;
  readonly documentCharactersMax: number;
  /** Words for what `up` throws, with its place. */
  readonly describe: (error: unknown) => string;
};

const madeMembers = ['id', 'createdAt', 'updatedAt', 'deletedAt'] as const;
const stays: Migrated = { kind: 'stays' };

/** @param now milliseconds since the epoch */
export function migrateDocument(passage: Passage, candidate: Candidate, now: number): Migrated {
  const { collection, validator, isLast, documentCharactersMax } = passage;
  const { doc, owner, createdAt, isOlder } = candidate;
  const before = JSON.parse(doc) as Members;
  const isPlain = passage.migrations.length === 0;
  const [misfit] = isPlain || !isOlder ? faultsOf(passage, before) : [];
  if (!isOlder && misfit === undefined) return stays;
  const passed = passThrough(passage, doc, before);
  if ('failure' in passed) return { kind: 'failed', failure: passed.failure };
  // A document that fits but for its date-times gets no defaults of optional members.
  const isRespelt = isPlain && misfit?.message === respellingMessage;
  const filling = isRespelt ? { fillDefaults: validator.instants?.keep } : validator;
  const fields = storedFields(collection, filling, passed.document);
  const parts = { id: candidate.id, fields, owner, createdAt, deletedAt: null };
  const [fault] = isLast ? faultsOf(passage, withoutMembers(fields, collection.computed)) : [];
  if (fault !== undefined) return failed(undefined, fault.pointer, fault.message);
  // Computed fields are those of the declaration, which only the last migration must satisfy.
  const made = { collection: isLast ? collection : withoutComputed(collection), validator };
  const changedBy = passed.changedBy.size > 0 ? passed.changedBy : idsOfLast(passage);
  const isTouching = passage.migrations.some(({ id, touch }) => touch && changedBy.has(id));
  let next: NextRow;
  try {
    next = nextRow(made, { ...parts, updatedAt: candidate.updatedAt });
    if (isTouching && next.doc !== doc)
      next = nextRow(made, { ...parts, updatedAt: Math.max(now, candidate.updatedAt) });
  } catch (error) {
    return failed(undefined, '', passage.describe(error));
  }
  if (next.doc.length > documentCharactersMax) {
    return failed(undefined, '', `would be longer than ${documentCharactersMax} characters`);
  }
  return next.doc === doc ? stays : { kind: 'changed', next, before: doc };
}

/** Defaults and computed fields, which are filled in at the end, count as a change by the last migration. */
function idsOfLast({ migrations }: Passage): ReadonlySet<string> {
  return new Set(migrations.slice(-1).map(({ id }) => id));
}

/** What a document is now, and what the migrations would make of it, for `comity migrate --dry-run`. */
export type Looked = {
  /** The first fault by the present schema; undefined: it fits. */
  readonly fault: FieldError | undefined;
  /** Ids of the migrations that would change it. */
  readonly changedBy: readonly string[];
  /** It fits once its defaults are filled in and its date-times are kept in UTC, which needs no migration. */
  readonly isFilled: boolean;
  /** Why the migrations would stop at it. */
  readonly failure: DocumentFailure | undefined;
  /** What it refers to, if it fits or would fit. */
  readonly references: readonly HeldReference[];
};

export function lookAtDocument(passage: Passage, candidate: Candidate, now: number): Looked {
  const { collection, migrations } = passage;
  const document = JSON.parse(candidate.doc) as Members;
  const [fault] = faultsOf(passage, document);
  const looked = { fault, changedBy: [], isFilled: false, failure: undefined };
  if (fault === undefined && (migrations.length === 0 || !candidate.isOlder))
    return { ...looked, references: referencesOf(collection, document) };
  const migrated = migrateDocument(passage, { ...candidate, isOlder: true }, now);
  const isChanged = migrated.kind === 'changed';
  const references = isChanged ? migrated.next.references : referencesOf(collection, document);
  if (migrations.length === 0) return { ...looked, isFilled: isChanged, references };
  const passed = passThrough(passage, candidate.doc, document);
  const own = 'failure' in passed ? [] : [...passed.changedBy];
  return {
    ...looked,
    changedBy: own.length === 0 && isChanged ? [...idsOfLast(passage)] : own,
    failure: migrated.kind === 'failed' ? migrated.failure : undefined,
    references,
  };
}

type Passed =
  | { readonly document: Members; readonly changedBy: ReadonlySet<string> }
  | { readonly failure: DocumentFailure };

function passThrough(passage: Passage, doc: string, made: Members): Passed {
  // `up` may change what it is given.
  let document = JSON.parse(doc) as Members;
  const changedBy = new Set<string>();
  for (const { id, up, collection } of passage.migrations) {
    if (up === undefined) continue;
    const text = JSON.stringify(document);
    let returned: unknown;
    try {
      returned = callAs({ named: `the migration ${id} of ${collection}` }, up, document as OldDocument);
    } catch (error) {
      return { failure: { migration: id, pointer: '', message: passage.describe(error) } };
    }
    const taken = takenAsJson(returned);
    if (typeof taken === 'string') return { failure: { migration: id, pointer: '', message: taken } };
    document = taken;
    for (const name of madeMembers) {
      if (Object.hasOwn(document, name) && !equalJson(document[name], made[name])) {
        const message = 'must stay as it is: the store gives it';
        return { failure: { migration: id, pointer: `/${name}`, message } };
      }
    }
    if (JSON.stringify(document) !== text) changedBy.add(id);
  }
  return { document, changedBy };
}

/** @returns what is wrong with what is no document */
function takenAsJson(returned: unknown): Members | string {
  if (returned instanceof Promise) {
    returned.catch(() => undefined);
    return 'up returned a promise: it must be synchronous';
  }
  const wrong = `up returned ${kindOf(returned)}: return the document`;
  if (!isMembers(returned)) return wrong;
  try {
    const taken: unknown = JSON.parse(JSON.stringify(returned) ?? 'null');
    return isMembers(taken) ? taken : wrong;
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
    return `up returned what is no JSON: ${line}`;
  }
}

function faultsOf({ validator }: Passage, document: Members): readonly FieldError[] {
  const fields: Record<string, unknown> = { ...document };
  for (const name of madeMembers) delete fields[name];
  const { missing, invalid } = validator.check(fields);
  if (missing.length + invalid.length > 0) return [...missing, ...invalid];
  const pointer = validator.instants?.findRespelt(fields);
  return pointer === undefined ? [] : [{ pointer, message: respellingMessage }];
}

/** The fault of a document that fits but for the spelling of its instants. */
export const respellingMessage = 'is a date-time that is not kept in UTC yet';

function withoutMembers(document: Members, names: ReadonlyMap<string, unknown> = new Map()): Members {
  if (names.size === 0) return document;
  return Object.fromEntries(Object.entries(document).filter(([name]) => !names.has(name)));
}

function withoutComputed(collection: Collection): Collection {
  const { computed: _, ...rest } = collection;
  return rest;
}

function failed(migration: string | undefined, pointer: string, message: string): Migrated {
  return { kind: 'failed', failure: { migration, pointer, message } };
}
