/** Settings of the store: for both engines, for the embedded one, for migrations of documents, and for PostgreSQL. */

import { refuseDatabaseUrl, refuseSchema } from '../refusals.ts';
import { fixed, integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const dayS = 86_400;

export const storeSettings = section('Store', {
  readerThreads: integer(
    { unit: 'threads', default: 0, least: 0, most: 64 },
    'Threads for reads whose cost grows with the collection; one principal or address uses at most all but one of them. 0: one for each processor, from 2 to 4.',
  ),
  readerQueueMax: fixed(
    { unit: 'reads', value: 256 },
    'Such reads that may wait for a thread, or for a connection to PostgreSQL; each 64 KiB of values count as one more. Beyond it, Comity answers 503 to the newest read of the caller that has the most waiting.',
  ),
  scanTimeoutMs: integer(
    { unit: 'ms', default: 10_000, least: 10, most: 600_000 },
    'Time that one such read may take; then 503.',
  ),
  unitsWaitingMax: fixed({ unit: 'units', value: 10_000 }, 'Writes that may wait to be committed; then 503.'),
  unitsWaitingBytesMax: integer(
    { unit: 'bytes', default: 64 * MiB, least: MiB, most: 4096 * MiB },
    'Memory for the documents of writes that wait to be committed, two bytes for each character; then 503. One write that is longer is refused with 413; none is longer than 512 MiB.',
  ),
  unitsPerTransactionMax: fixed(
    { unit: 'units', value: 512 },
    'Writes that one transaction commits together.',
  ),
  charactersPerTransactionMax: fixed(
    { unit: 'characters', value: 8 * MiB },
    'Length of documents at which a transaction takes no further write; each row counts as 4,096 characters more.',
  ),
  cacheKibibytes: fixed({ unit: 'KiB', value: 16 * KiB }, 'Page cache of each connection to the database.'),
  mappedMebibytesMax: integer(
    { unit: 'MiB', default: 2048, least: 0, most: 1_048_576 },
    'Part of the file of the embedded store that reads map into memory instead of copying, and at most an eighth of the memory of the machine or the container. SQLite maps at most 2 GiB. 0 maps nothing.',
  ),
  changeWaitMs: integer(
    { unit: 'ms', default: 30_000, least: 10, most: 100_000 },
    'Time that a change may wait for earlier changes of the same row; then 503.',
  ),
  changesWaitingMax: fixed(
    { unit: 'changes', value: 10_000 },
    'Changes that may wait for earlier changes of the same row in one process; then 503.',
  ),
  startCheckMebibytes: integer(
    { unit: 'MiB', default: 256, least: 0, most: 1_048_576 },
    'Largest file of the embedded store that Comity checks for damage at the start; `comity check --store` checks any. 0: no check.',
  ),
  backupFolder: text(
    '',
    {},
    'Folder of the backups that administrators make by a request; created when missing. Empty: `backups` in the folder `data`. Backups survive the loss of the disk only if it is another one.',
  ),
  backupsMax: integer(
    { unit: 'backups', default: 20, least: 1, most: 1000 },
    'Backups in that folder; then 409 until one is deleted. Comity deletes none by itself.',
  ),
  logTruncateSeconds: fixed(
    { unit: 'seconds', value: 60 },
    'Time after a write in which the write-ahead log of the embedded store is truncated, which removes deleted data from it.',
  ),
  eventRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: 60, most: 3650 * dayS, isCommon: true },
    'Time for which events are kept, and so how far back an event stream can resume.',
  ),
});

export const migrationsSettings = section('Migrations', {
  migrateAtStart: toggle(
    'Makes pending migrations of documents at the start, before anything is served; of several processes one makes them and the others wait. Otherwise Comity refuses to start while a migration is pending.',
  ),
  serveUnmigrated: toggle(
    'Serves although documents do not fit the declaration, or migrations are pending; together with `migrateAtStart` they are made while it serves.',
  ),
  migrationLookDocumentsMax: integer(
    { unit: 'documents', default: 10_000, least: 1, most: 10_000_000 },
    'Documents of a collection whose declaration has changed that are looked at before the start. If there are more, `comity migrate` looks at all.',
  ),
  migrationBatchDocumentsMax: integer(
    { unit: 'documents', default: 250, least: 1, most: 10_000 },
    'Documents that a migration reads, changes and commits together.',
  ),
  migrationBatchBytesMax: fixed(
    { unit: 'bytes', value: MiB },
    'Length of documents at which a batch of a migration takes no further one.',
  ),
  migrationTimeoutMs: integer(
    { unit: 'ms', default: 10_000, least: 10, most: 3_600_000 },
    'Time that `up` may take for one document; then the migration stops.',
  ),
  migrationHeapBytesMax: integer(
    { unit: 'bytes', default: 512 * MiB, least: 32 * MiB, most: 65_536 * MiB },
    'Memory of the thread that runs migrations; beyond it the migration stops.',
  ),
});

/** Without `databaseUrl` the embedded store is used, and the other settings here have no effect. */
export const postgresSettings = section('PostgreSQL', {
  databaseUrl: text(
    undefined,
    { secret: true, refuse: refuseDatabaseUrl },
    'A `postgres://` URL keeps the data in that database instead of the folder `data`; any number of processes may share it.',
  ),
  databaseSchema: text(
    'comity',
    { charactersMax: 63, refuse: refuseSchema },
    'Schema of the database that holds every table of Comity; created when missing.',
  ),
  databaseConnectTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 600_000 },
    'Time to connect to the database.',
  ),
  databaseTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 600_000 },
    'Time for the database to respond to a read by id, a page or a commit; then 503. Scans have `scanTimeoutMs`.',
  ),
  databaseReadConnections: integer(
    { unit: 'connections', default: 2, least: 1, most: 64 },
    'Connections for reads whose cost does not grow with the collection; each carries any number of reads at once.',
  ),
  databaseScanConnections: integer(
    { unit: 'connections', default: 4, least: 1, most: 256 },
    'Connections for reads whose cost grows with the collection, one at a time on each.',
  ),
  databasePollMs: integer(
    { unit: 'ms', default: 1000, least: 10, most: 600_000 },
    'Time between two polls for changes of other processes. Notifications arrive in between, except where the connection does not support LISTEN.',
  ),
});
