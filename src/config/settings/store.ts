/** Settings of storage that hold for both engines or for the embedded one; those of PostgreSQL alone are in postgres.ts. */
import { integer, section } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const dayS = 86_400;

export const storeSettings = section('Store', {
  readerThreads: integer(
    { unit: 'threads', default: 0, least: 0, most: 64 },
    'Threads for reads whose cost grows with the collection; one principal or address takes at most all but one of them. 0: as many as processors, from 2 to 4.',
  ),
  readerQueueMax: integer(
    { unit: 'reads', default: 256, least: 1, most: 100_000 },
    'Such reads that may wait for a thread, or a connection to PostgreSQL, where each 64 KiB of values count as a further one; then the newest of who has most waiting is 503.',
  ),
  scanTimeoutMs: integer(
    { unit: 'ms', default: 10_000, least: 10, most: 600_000 },
    'Time that one such read may take; then 503.',
  ),
  unitsWaitingMax: integer(
    { unit: 'units', default: 10_000, least: 1, most: 1_000_000 },
    'Writes that may wait to be committed; then 503.',
  ),
  unitsWaitingBytesMax: integer(
    { unit: 'bytes', default: 64 * MiB, least: MiB, most: 4096 * MiB },
    'Memory for the documents of writes that wait to be committed; then 503.',
  ),
  unitsPerTransactionMax: integer(
    { unit: 'units', default: 512, least: 1, most: 100_000 },
    'Writes that one transaction commits together.',
  ),
  charactersPerTransactionMax: integer(
    { unit: 'characters', default: 8 * MiB, least: KiB, most: 1024 * MiB },
    'Length of documents after which a transaction takes no further write.',
  ),
  cacheKibibytes: integer(
    { unit: 'KiB', default: 16 * KiB, least: 64, most: 16 * MiB },
    'Page cache of each connection to the database.',
  ),
  changeWaitMs: integer(
    { unit: 'ms', default: 30_000, least: 10, most: 100_000 },
    'Time that a change may wait for its turn at a row that others change; then 503.',
  ),
  changesWaitingMax: integer(
    { unit: 'changes', default: 10_000, least: 0, most: 1_000_000 },
    'Changes that may wait for their turn in this process; then 503.',
  ),
  startCheckMebibytes: integer(
    { unit: 'MiB', default: 256, least: 0, most: 1_048_576 },
    'Greatest file of the embedded store that a start has read through for damage; `comity check --store` reads any. 0 reads none.',
  ),
  logTruncateSeconds: integer(
    { unit: 'seconds', default: 60, least: 1, most: 86_400 },
    'Time after a write in which the write-ahead log of the embedded store is truncated, and with it whatever was deleted.',
  ),
  eventRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: 60, most: 3650 * dayS },
    'Time that events are kept, hence how far back an event stream can resume.',
  ),
});
