/**
 * Every table that the program keeps in its store: those of the declared collections and its own. The one list that the program and
 * `comity migrate` share.
 */
import {
  auditCollection,
  identitiesTable,
  keySecretsTable,
  keysCollection,
  mailCodesTable,
  passwordsTable,
  sessionsTable,
  signInsTable,
  signingKeysTable,
  usersCollection,
} from './accounts/account-tables.ts';
import { adminKeyRowId, secretsTable } from './accounts/admin-key.ts';
import { portalLinksCollection, portalSecretsTable } from './accounts/portal/portal-verifier.ts';
import { viewOwnersTable, viewsCollection } from './accounts/saved-views.ts';
import { usedChallengesTable } from './accounts/second-factor/challenge-tokens.ts';
import { secondFactorsTable } from './accounts/second-factor/factor-row.ts';
import type { Configuration } from './config/configuration.ts';
import { filesTableOf } from './files/file-rows.ts';
import { holdTable } from './hold/hold.ts';
import { jobStatesTable } from './jobs/scheduler.ts';
import { idempotencyTable } from './kernel/idempotency.ts';
import { deletionMarksTable } from './kernel/operations/deletion-marks.ts';
import {
  operationRequestsTable,
  operationsTable,
  renewedAtField,
} from './kernel/operations/stored-request.ts';
import { mailContentsTable, mailsCollection } from './mail/mail-tables.ts';
import { migrationsTable } from './migrations/migration-state.ts';
import type { Rule } from './model/access.ts';
import type { Collection } from './model/collection.ts';
import { ownerField } from './model/field.ts';
import { realtimeTicketsTable } from './realtime/identify.ts';
import { queriesTable } from './resources/collection/stored-queries.ts';
import { keyRowId } from './store/secrets/secret-key-ring.ts';
import type { Table } from './store/store.ts';
import {
  linedMessages,
  receivedAttemptsTable,
  receivedCollection,
  receivedContentsTable,
  senderSecretsTable,
} from './webhooks/receiving/received-tables.ts';
import {
  attemptsTable,
  deliveriesCollection,
  deliveryLinesTable,
  endpointGenerationTable,
  endpointHealthTable,
  endpointSecretsTable,
  endpointsCollection,
  fanOutTable,
  recoveriesCollection,
  wakesTable,
  webhookKeysTable,
} from './webhooks/sending/sending-tables.ts';
import { lanesTable } from './work/lane-leases.ts';
import { startsTable } from './work/starts.ts';

/**
 * The table that keeps a collection: one of the same name, with its indexes, unique fields and references.
 * @param isOwned lists are filtered by owner (§5.1.8)
 */
export function tableOf(collection: Collection, isOwned = false): Table {
  const id = collection.fields.get('id');
  return {
    name: collection.name,
    fields: [...collection.fields.values()],
    indexes: [
      ...collection.indexes,
      // Lists in order of id would walk past the rows that are only hidden.
      ...(id === undefined || !collection.softDelete ? [] : [[id]]),
      // A list of one owner's costs the same however many others there are.
      ...(isOwned || isOwners(collection.access.read) ? [[ownerField]] : []),
    ],
    unique: collection.unique,
    references: collection.references.flatMap((reference) => {
      const field = collection.fields.get(reference.field);
      return field === undefined ? [] : [{ field, table: reference.collection }];
    }),
    searched: collection.searchFields.length > 0,
    ...(collection.searchIndex === undefined ? {} : { words: collection.searchIndex }),
  };
}

function isOwners(rule: Rule): boolean {
  return rule === 'owner' || (typeof rule === 'object' && 'bearing' in rule && isOwners(rule.rule));
}

const byOwner = [[ownerField]];

/** Tables that the program keeps for itself. The store adds that of the events. */
const ownTables: readonly Table[] = [
  ...[secretsTable, idempotencyTable, operationsTable, queriesTable].map((name) => ownTable(name)),
  ownTable(realtimeTicketsTable),
  ownTable(operationRequestsTable, [[renewedAtField]]),
  ownTable(deletionMarksTable, byOwner),
  ...[secondFactorsTable, usedChallengesTable].map((name) => ownTable(name)),
  ...[passwordsTable, signingKeysTable, signInsTable].map((name) => ownTable(name)),
  ...[sessionsTable, keySecretsTable, mailCodesTable, identitiesTable].map((name) => ownTable(name, byOwner)),
  tableOf(viewsCollection, true),
  ownTable(viewOwnersTable, byOwner),
  ...[keysCollection, auditCollection, portalLinksCollection].map((each) => tableOf(each)),
  ownTable(portalSecretsTable),
  ...[endpointsCollection, deliveriesCollection, recoveriesCollection].map((each) => tableOf(each)),
  ...[endpointSecretsTable, endpointGenerationTable, endpointHealthTable].map((name) => ownTable(name)),
  ...[attemptsTable, fanOutTable, wakesTable, lanesTable, webhookKeysTable].map((name) => ownTable(name)),
  ...[mailsCollection, receivedCollection].map((each) => tableOf(each)),
  ownTable(mailContentsTable),
  filesTableOf,
  ...[receivedContentsTable, receivedAttemptsTable, senderSecretsTable].map((name) => ownTable(name)),
  ...[
    jobStatesTable,
    linedMessages.linesTable,
    deliveryLinesTable,
    holdTable,
    migrationsTable,
    startsTable,
  ].map((name) => ownTable(name)),
];

const noRow: ReadonlySet<string> = new Set();

/** Tables whose rows hold secrets that must be used again, and are kept encrypted; each with the rows that stay plain. */
export const sealedTables: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  // A digest, which every request by the administrator key reads.
  [secretsTable, new Set([adminKeyRowId, keyRowId])],
  [secondFactorsTable, noRow],
  ...[signingKeysTable, endpointSecretsTable, webhookKeysTable, senderSecretsTable, mailContentsTable].map(
    (name) => [name, noRow] as const,
  ),
]);

/** @param late labels of indexes that stored rows do not fit yet */
export function storeTables(
  { collections, accounts }: Pick<Configuration, 'collections'> & Partial<Pick<Configuration, 'accounts'>>,
  late: ReadonlySet<string> = noRow,
): readonly Table[] {
  const users = accounts?.users ?? usersCollection;
  const declared = [...collections.values()].map((collection) => tableOf(collection, true));
  const shown = [...declared, ...(accounts === undefined ? [] : [tableOf(users)])].map(
    (table): Table => ({ ...table, view: true }),
  );
  const tables = [...shown, ...(accounts === undefined ? [tableOf(users)] : [])];
  return [...(late.size === 0 ? tables : tables.map((table) => ({ ...table, late }))), ...ownTables];
}

function ownTable(name: string, indexes: Table['indexes'] = []): Table {
  return { name, fields: [], indexes, unique: [], references: [], searched: false };
}
