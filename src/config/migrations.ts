/**
 * Migrations of documents: functions that bring the documents of a collection from an earlier declaration to the present one. They are
 * ordered, have an id each, and run once in a store (src/migrations).
 */
import { Type } from 'typebox';
import type { Collection } from '../model/collection.ts';
import { kindOf, suggestion } from './inspection.ts';
import {
  flagShape,
  inspectShape,
  listInParts,
  type Reporter,
  type SoundParts,
  textThat,
  unshaped,
} from './shape.ts';

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
const migrationShape = Type.Object(
  {
    id: textThat((id) => migrationId.test(id), {
      must: 'must be a text of 1 to 100 letters, digits and . _ -, such as 2-split-name',
    }),
    ...unshaped('collection', 'removed', 'up'),
    ...{ events: flagShape, touch: flagShape },
  },
  { calls: 'property of a migration' },
);
const migrationsShape = listInParts(Type.Unknown(), {
  maxItems: migrationsMax,
  must: "must be a list such as [{ id: '2-split-name', collection: 'tickets', up(document) { ... } }]",
});

/** Adds every mistake in `migrations` of a configuration to the list. */
export function inspectMigrations(
  written: unknown,
  collections: ReadonlyMap<string, Collection>,
  mistakes: string[],
): readonly DeclaredMigration[] {
  if (written === undefined) return [];
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  const ids = new Set<string>();
  const found = (inspectShape(migrationsShape, written, 'migrations', report) ?? []).flatMap(
    (each, index) => {
      const sound = inspectShape(migrationShape, each, `migrations[${index}]`, report);
      const refuse: Reporter = (predicate) => report(`migrations[${index}]${predicate}`);
      return sound === undefined ? [] : [resolveMigration(sound, ids, refuse)];
    },
  );
  inspectNames(found, collections, mistakes);
  return found;
}

function resolveMigration(
  { id, collection, up, removed, events = false, touch = false }: SoundParts<typeof migrationShape>,
  ids: Set<string>,
  refuse: Reporter,
): DeclaredMigration {
  if (id !== undefined && ids.has(id))
    refuse(`.id "${id}" is that of an earlier migration; give each an id of its own`);
  ids.add(id ?? '');
  if (typeof collection !== 'string')
    refuse(`.collection must be the name of a collection, not ${kindOf(collection)}`);
  if (removed !== undefined && removed !== true) refuse('.removed must be true, or absent');
  if (removed === true && up !== undefined) refuse('.up has no effect beside removed: give one of them');
  if (removed === undefined) {
    if (typeof up !== 'function') refuse(`.up must be a function of the document, not ${kindOf(up)}`);
    else if (up.constructor.name === 'AsyncFunction')
      refuse('.up must not be async: it is pure, and returns the new document at once');
  }
  return {
    ...{ id: id ?? '', collection: String(collection), events, touch },
    // One that is no function is reported above, and is no removal.
    up: removed === true ? undefined : ((up ?? String) as DeclaredMigration['up']),
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
