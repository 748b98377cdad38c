/** How far the building of an index has come, as the server reports it to another connection: the one that builds is busy. */
import type { Address } from '../connection/address.ts';
import { openSession } from './session.ts';

const lookAgainMs = 500;

export type WatchOptions = {
  readonly connectTimeoutMs: number;
  /** In blocks of the table, then in rows, as the phases of building have it. */
  readonly onProgress: (done: number, total: number) => void;
};

/**
 * Reports until stopped. Never fails: what cannot be watched is built all the same.
 * @param processNumber of the server's process that builds
 * @returns what stops it
 */
export async function watchBuilds(
  address: Address,
  processNumber: number,
  { connectTimeoutMs, onProgress }: WatchOptions,
): Promise<() => Promise<void>> {
  const session = await openSession(address, 'comity migrate watch', connectTimeoutMs).catch(ignore);
  if (session === undefined) return async () => undefined;
  let looking: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    const [row] = (await session.rows(progressSql, [processNumber]).catch(ignore)) ?? [];
    const [blocksDone, blocks, rowsDone, rows] = (row ?? []).map(Number);
    // A second phase counts rows where the first counted blocks.
    if (rows !== undefined && rows > 0) onProgress(rowsDone ?? 0, rows);
    else if (blocks !== undefined && blocks > 0) onProgress(blocksDone ?? 0, blocks);
  };
  const timer = setInterval(() => {
    looking = looking.then(look);
  }, lookAgainMs);
  return async () => {
    clearInterval(timer);
    await looking;
    await session.end();
  };
}

const progressSql = `SELECT blocks_done, blocks_total, tuples_done, tuples_total
  FROM pg_catalog.pg_stat_progress_create_index WHERE pid = $1`;

function ignore(): undefined {
  // It is only for the eye.
}
