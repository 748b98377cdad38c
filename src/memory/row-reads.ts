/** Reads of whole rows, of which nothing but their number ends one: every caller, with the octets that it may have at once. */

const KiB = 1024;

/** Rows of the program's own tables that are read at once (`Plan.rows`): their number ends a read, so it is small where rows are long. */
export type RowRead = {
  readonly file: string;
  readonly reads: string;
  readonly rows: number;
  /** Octets of a row, at most, by default. */
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
    file: 'src/webhooks/outbound/fan-out/kept-rows.ts',
    reads: 'endpoints and their secrets',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/outbound/endpoint-headers.ts',
    reads: 'endpoints of earlier versions, once',
    rows: 32,
    rowOctets: 176 * KiB,
  },
  {
    file: 'src/webhooks/outbound/fan-out/generation.ts',
    reads: 'numbers of the generation of endpoints, with what each changed',
    rows: 256,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/webhooks/outbound/fan-out/follow-wake-rows.ts',
    reads: 'calls to other processes that deliveries are due',
    rows: 256,
    rowOctets: 64 * KiB,
  },
  {
    file: 'src/webhooks/outbound/fan-out/fan-out-parts.ts',
    reads: 'deliveries that writes owe',
    rows: 8,
    rowOctets: 20 * KiB,
  },
  {
    file: 'src/webhooks/outbound/engine/due-rows.ts',
    reads:
      'deliveries or received messages that are due, of one endpoint or sender; mostly as many as its window',
    rows: 8192,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/webhooks/outbound/lanes/leases.ts',
    reads: 'leases of processes, one row each, and one of the lanes',
    rows: 1024,
    rowOctets: 16 * KiB,
  },
  {
    file: 'src/webhooks/outbound/recovery/chunk.ts',
    reads: 'deliveries of one event',
    rows: 100,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/webhooks/outbound/recovery/recoveries.ts',
    reads: 'recoveries that are running',
    rows: 100,
    rowOctets: 2 * KiB,
  },
  {
    file: 'src/resources/webhooks/events/expunge-deliveries.ts',
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
