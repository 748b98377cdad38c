/**
 * Every table that the program keeps in its store: those of the declared collections and its own. The one list that the program and
 * `comity migrate` share.
 */
import { adminKeyRowId, secretsTable } from './auth/admin-key.ts';
import {
  identitiesTable,
  keySecretsTable,
  mailCodesTable,
  passwordsTable,
  sessionsTable,
  signInsTable,
  signingKeysTable,
} from './auth/tables.ts';
import type { Configuration } from './config/configuration.ts';
import { tableOf } from './config/tables.ts';
import { ownerField } from './model/field.ts';
import { auditCollection, keysCollection, usersCollection } from './resources/accounts/collections.ts';
import { idempotencyTable } from './resources/idempotency.ts';
import { operationRequestsTable, operationsTable, renewedAtField } from './resources/operations/tables.ts';
import { queriesTable } from './resources/queries/stored-queries.ts';
import { realtimeTicketsTable } from './resources/realtime/tickets.ts';
import { keyRowId } from './store/secrets/secret-key-ring.ts';
import type { Table } from './store/store.ts';
import { receivedCollection } from './webhooks/inbound/collections.ts';
import {
  receivedAttemptsTable,
  receivedContentsTable,
  senderSecretsTable,
} from './webhooks/inbound/tables.ts';
import {
  deliveriesCollection,
  endpointsCollection,
  recoveriesCollection,
} from './webhooks/outbound/collections.ts';
import {
  attemptsTable,
  endpointGenerationTable,
  endpointHealthTable,
  endpointSecretsTable,
  fanOutTable,
  lanesTable,
  wakesTable,
  webhookKeysTable,
} from './webhooks/outbound/tables.ts';

const byOwner = [[ownerField]];

/** Tables that the program keeps for itself. The store adds that of the events. */
const ownTables: readonly Table[] = [
  ...[secretsTable, idempotencyTable, operationsTable, queriesTable].map((name) => ownTable(name)),
  ownTable(realtimeTicketsTable),
  ownTable(operationRequestsTable, [[renewedAtField]]),
  ...[passwordsTable, signingKeysTable, signInsTable].map((name) => ownTable(name)),
  ...[sessionsTable, keySecretsTable, mailCodesTable, identitiesTable].map((name) => ownTable(name, byOwner)),
  ...[usersCollection, keysCollection, auditCollection].map(tableOf),
  ...[endpointsCollection, deliveriesCollection, recoveriesCollection].map(tableOf),
  ...[endpointSecretsTable, endpointGenerationTable, endpointHealthTable].map((name) => ownTable(name)),
  ...[attemptsTable, fanOutTable, wakesTable, lanesTable, webhookKeysTable].map((name) => ownTable(name)),
  ...[receivedCollection].map(tableOf),
  ...[receivedContentsTable, receivedAttemptsTable, senderSecretsTable].map((name) => ownTable(name)),
];

const noRow: ReadonlySet<string> = new Set();

/** Tables whose rows hold secrets that must be used again, and are kept encrypted; each with the rows that stay plain. */
export const sealedTables: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  // A digest, which every request by the administrator key reads.
  [secretsTable, new Set([adminKeyRowId, keyRowId])],
  ...[signingKeysTable, endpointSecretsTable, webhookKeysTable, senderSecretsTable].map(
    (name) => [name, noRow] as const,
  ),
]);

export function storeTables(configuration: Pick<Configuration, 'collections'>): readonly Table[] {
  return [...[...configuration.collections.values()].map(tableOf), ...ownTables];
}

function ownTable(name: string, indexes: Table['indexes'] = []): Table {
  return { name, fields: [], indexes, unique: [], references: [], searched: false };
}
