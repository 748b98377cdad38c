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
    file: 'src/store/secrets/sealed-store.ts',
    reads: 'secrets, at the start and when the key changes',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/sending/fan-out/directory-rows.ts',
    reads: 'endpoints and their secrets',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/sending/endpoint-headers.ts',
    reads: 'endpoints of earlier versions, once',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/sending/fan-out/generation.ts',
    reads: 'numbers of the generation of endpoints, with what each changed',
    rows: 256,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/webhooks/sending/wakes.ts',
    reads: 'calls to other processes that deliveries are due',
    rows: 256,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/webhooks/sending/fan-out/owed-deliveries.ts',
    reads: 'deliveries that writes owe',
    rows: 8,
    rowOctets: 20 * KiB,
  },
  {
    file: 'src/webhooks/work/due-rows.ts',
    reads:
      'deliveries or received messages that are due, of one endpoint or sender; mostly as many as its window',
    rows: 8192,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/webhooks/work/lane-leases.ts',
    reads: 'leases of processes, one row each, and one of the lanes',
    rows: 1024,
    rowOctets: 16 * KiB,
  },
  {
    file: 'src/webhooks/sending/recovery/recovery-step.ts',
    reads: 'deliveries of one event',
    rows: 100,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/webhooks/sending/recovery/recoveries.ts',
    reads: 'recoveries that are running',
    rows: 100,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/webhooks/sending/events/expunge.ts',
    reads: 'attempts of one delivery, with the beginnings of answers',
    rows: 100,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/resources/queries/stored-queries.ts',
    reads: 'stored queries, at the first one of an embedded store',
    rows: 32,
    rowOctets: 132 * KiB,
  },
];
