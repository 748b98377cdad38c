/**
 * Every caller of `Plan.rows` on Comity's own tables, with the memory of a read, bounded by the number of rows only.
 */

const KiB = 1024;

export type RowRead = {
  readonly file: string;
  readonly reads: string;
  readonly rows: number;
  /** Largest size of a row with default settings. */
  readonly rowOctets: number;
};

export const rowReads: readonly RowRead[] = [
  {
    file: 'src/files/copy-files.ts',
    reads: 'files that a backup or a check goes through',
    rows: 500,
    rowOctets: 8 * KiB,
  },
  {
    file: 'src/files/remove-files.ts',
    reads: 'files and uploads whose octets are to be removed',
    rows: 100,
    rowOctets: 8 * KiB,
  },
  {
    file: 'src/migrations/migration-state.ts',
    reads: 'migrations that were made, and the declared shapes of the collections, at the start',
    rows: 16,
    rowOctets: 256 * KiB,
  },
  {
    file: 'src/store/secrets/sealed-store.ts',
    reads: 'secrets, at the start and when the key changes',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/sending/fan-out/endpoints-in-memory.ts',
    reads: 'endpoints and their secrets',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/sending/endpoints/endpoint-owner.ts',
    reads: 'endpoints of earlier versions, once',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/sending/fan-out/generation.ts',
    reads: 'generations of the endpoints that earlier versions numbered, once',
    rows: 256,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/webhooks/sending/wakes.ts',
    reads: 'wakes that announce due deliveries to other processes',
    rows: 256,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/webhooks/sending/fan-out/owed-deliveries.ts',
    reads: 'deliveries that committed writes owe',
    rows: 8,
    rowOctets: 20 * KiB,
  },
  {
    file: 'src/work/starts.ts',
    reads: 'processes that may have died',
    rows: 1024,
    rowOctets: KiB,
  },
  {
    file: 'src/work/due-queue.ts',
    reads: 'due deliveries of one endpoint, or due messages of one sender; usually as many as its window',
    rows: 8192,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/work/work-lines.ts',
    reads: 'messages or deliveries of one line, to find the first',
    rows: 32,
    rowOctets: KiB,
  },
  {
    file: 'src/jobs/scheduler.ts',
    reads: 'states of jobs, at the start',
    rows: 200,
    rowOctets: KiB,
  },
  {
    file: 'src/work/lane-leases.ts',
    reads: 'leases, one row for each process and one for the lanes',
    rows: 1024,
    rowOctets: 16 * KiB,
  },
  {
    file: 'src/webhooks/sending/recovery/recovery.ts',
    reads: 'deliveries of one event',
    rows: 100,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/webhooks/sending/steps.ts',
    reads: 'running recoveries, or deliveries that committed writes owe',
    rows: 100,
    rowOctets: 20 * KiB,
  },
  {
    file: 'src/webhooks/sending/events/expunge.ts',
    reads: 'attempts of one delivery, with the beginnings of responses',
    rows: 100,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/kernel/operations/deletion-marks.ts',
    reads: 'marks of one deletion, to remove them',
    rows: 1000,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/resources/collection/stored-queries.ts',
    reads: 'stored queries, once, when an embedded store keeps the first new one',
    rows: 32,
    rowOctets: 132 * KiB,
  },
];
