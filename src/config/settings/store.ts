/** Settings of storage that hold for both engines or for the embedded one; those of PostgreSQL alone are in postgres.ts. */
import { integer, section } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const dayS = 86_400;

export const storeSettings = section('Store', {
  readerThreads: integer(
    { unit: 'threads', default: 1, least: 1, most: 64 },
    'Threads for reads whose cost grows with the collection.',
  ),
  readerQueueMax: integer(
    { unit: 'reads', default: 256, least: 1, most: 100_000 },
    'Such reads that may wait for a thread; then 503.',
  ),
  scanTimeoutMs: integer(
    { unit: 'ms', default: 10_000, least: 10, most: 600_000 },
    'Time that one such read may take; then 503.',
  ),
  unitsWaitingMax: integer(
    { unit: 'units', default: 10_000, least: 1, most: 1_000_000 },
    'Writes that may wait to be committed; then 503.',
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
  commitRetriesMax: integer(
    { unit: 'retries', default: 64, least: 0, most: 10_000 },
    'How often a change without precondition that lost a race is computed again; then 503.',
  ),
  eventRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: 60, most: 3650 * dayS },
    'Time that events are kept, hence how far back an event stream can resume.',
  ),
});
