/**
 * Migrations of documents: functions that bring the documents of a collection from an earlier declaration to the present one. They are
 * ordered, have an id each, and run once in a store (src/migrations).
 */
import type { Collection } from '../model/collection.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';

/** A stored document, in the shape of whatever declaration it was last written under. */
export type OldDocument = {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly [member: string]: unknown;
};

/** Accounts migrate like a collection of this name. */
const accountsName = 'users';

/** @template N the name of its collection, or `users` for accounts */
export type DocumentMigration<N extends string = string> = {
  /** Unique among all migrations, also those of the past: `2-split-name`. */
  readonly id: string;
  readonly collection: N;
  /** Appends an `updated` event for each document that changes. Default false. */
  readonly events?: boolean;
  /** Sets `updatedAt` of each document that changes. Default false. */
  readonly touch?: boolean;
  /**
   * Returns the document in its new shape: pure and synchronous. The author may give the type of `document`. `id` and the times stay as they
   * are; after the last migration of the collection, the result must fit its schema.
   */
  up(document: OldDocument): object;
};

/** Says that a collection is no longer declared on purpose. Its documents stay in the store and are not served. */
export type CollectionRemoval = {
  readonly id: string;
  readonly collection: string;
  readonly removed: true;
};

/** @template C the declarations of the collections */
export type MigrationDeclaration<C = unknown> =
  | DocumentMigration<string extends keyof C ? string : (keyof C & string) | typeof accountsName>
  | CollectionRemoval;

export type DeclaredMigration = {
  readonly id: string;
  readonly collection: string;
  /** Undefined: the collection is removed. */
  readonly up: ((document: OldDocument) => unknown) | undefined;
  readonly events: boolean;
  readonly touch: boolean;
};

const migrationsMax = 1000;
const migrationId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const members: ReadonlySet<string> = new Set<keyof DocumentMigration | 'removed'>([
  'collection',
  'events',
  'id',
  'removed',
  'touch',
  'up',
]);

/** Adds every mistake in `migrations` of a configuration to the list. */
export function inspectMigrations(
  written: unknown,
  collections: ReadonlyMap<string, Collection>,
  mistakes: string[],
): readonly DeclaredMigration[] {
  if (written === undefined) return [];
  if (!Array.isArray(written)) {
    mistakes.push(
      `migrations must be a list such as [{ id: '2-split-name', collection: 'tickets', up(document) { ... } }], not ${kindOf(written)}`,
    );
    return [];
  }
  if (written.length > migrationsMax) mistakes.push(`migrations may hold ${migrationsMax} at most`);
  const found: DeclaredMigration[] = [];
  const ids = new Set<string>();
  for (const [index, migration] of written.slice(0, migrationsMax).entries()) {
    const refuse = (predicate: string): void => void mistakes.push(`migrations[${index}]${predicate}`);
    if (!isRecord(migration)) refuse(` must be an object, not ${kindOf(migration)}`);
    else found.push(inspectMigration(migration, ids, refuse));
  }
  inspectNames(found, collections, mistakes);
  return found;
}

type Refuse = (predicate: string) => void;

function inspectMigration(
  written: Readonly<Record<string, unknown>>,
  ids: Set<string>,
  refuse: Refuse,
): DeclaredMigration {
  const { id, collection, up, removed, events = false, touch = false } = written;
  for (const member of Object.keys(written)) {
    if (!members.has(member))
      refuse(`.${member} is not a property of a migration${suggestion(member, members)}`);
  }
  if (typeof id !== 'string' || !migrationId.test(id)) {
    refuse('.id must be a text of 1 to 100 letters, digits and . _ -, such as 2-split-name');
  } else if (ids.has(id)) refuse(`.id "${id}" is that of an earlier migration; give each an id of its own`);
  ids.add(String(id));
  if (typeof collection !== 'string') {
    refuse(`.collection must be the name of a collection, not ${kindOf(collection)}`);
  }
  if (removed !== undefined && removed !== true) refuse('.removed must be true, or absent');
  if (removed === true && up !== undefined) refuse('.up has no effect beside removed: give one of them');
  if (removed === undefined) {
    if (typeof up !== 'function') refuse(`.up must be a function of the document, not ${kindOf(up)}`);
    else if (up.constructor.name === 'AsyncFunction')
      refuse('.up must not be async: it is pure, and returns the new document at once');
  }
  for (const [name, value] of Object.entries({ events, touch })) {
    if (typeof value !== 'boolean') refuse(`.${name} must be true or false, not ${kindOf(value)}`);
  }
  return {
    id: String(id),
    collection: String(collection),
    // One that is no function is told above, and is no removal.
    up: removed === true ? undefined : ((up ?? String) as DeclaredMigration['up']),
    events: events === true,
    touch: touch === true,
  };
}

/** Migrations of a collection that is gone stay in the list, before the entry that removes it. */
function inspectNames(
  migrations: readonly DeclaredMigration[],
  collections: ReadonlyMap<string, Collection>,
  mistakes: string[],
): void {
  for (const [index, { collection, up }] of migrations.entries()) {
    const isDeclared = collection === accountsName || collections.has(collection);
    if (up === undefined) {
      const returns = migrations.slice(index + 1).some((later) => later.collection === collection);
      if (isDeclared && !returns) {
        mistakes.push(
          `migrations[${index}].removed: ${collection} is a collection of the configuration; take it out of collections, or leave this migration out`,
        );
      }
      continue;
    }
    const isRemoved = migrations
      .slice(index + 1)
      .some((later) => later.collection === collection && later.up === undefined);
    if (isDeclared || isRemoved || collections.size === 0) continue;
    mistakes.push(
      `migrations[${index}].collection names "${collection}", which is not a collection${suggestion(collection, collections.keys())}`,
    );
  }
}
