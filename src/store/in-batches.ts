/**
 * Reading what a plan finds to its end, batch by batch from the start. The event loop has a turn between two batches, because the embedded
 * store answers at once and a long table would hold it.
 */
import type { Keyset, Page, Plan, Row } from './store.ts';

/**
 * Whole rows of a plan in order of id.
 * @param rowsPerRead at most the limit of the plan
 * @throws StoreUnavailable
 */
export async function* rowBatches(
  plan: Pick<Plan, 'rows'>,
  rowsPerRead: number,
): AsyncGenerator<readonly Row[], undefined> {
  for (let position: Keyset = { from: 'start' }; ; ) {
    const rows = await plan.rows(position, rowsPerRead);
    const last = rows.at(-1);
    if (last === undefined) return undefined;
    yield rows;
    if (rows.length < rowsPerRead) return undefined;
    position = { from: 'after', key: [last.id] };
    await nextTurn();
  }
}

/**
 * Pages of a plan, whatever its order. The first one may be empty.
 * @param from where the first page begins
 * @throws StoreUnavailable
 */
export async function* pagesOf(
  plan: Pick<Plan, 'page'>,
  from: Keyset = { from: 'start' },
): AsyncGenerator<Page, undefined> {
  for (let position = from; ; ) {
    const page = await plan.page(position);
    yield page;
    if (!page.more || page.last === null) return undefined;
    position = { from: 'after', key: page.last };
    await nextTurn();
  }
}

/** Gives the event loop a turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
