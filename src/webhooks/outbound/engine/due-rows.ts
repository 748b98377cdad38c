/** What of one queue has a time, the earliest first: a range of one index, whatever stands behind it. */
import type { Collection } from '../../../model/collection.ts';
import { type Field, idField } from '../../../model/field.ts';
import type { Filter, Sort } from '../../../model/filter.ts';
import type { MaybePromise, Plan, Row, Store } from '../../../store/store.ts';
import { deliveriesCollection } from '../collections.ts';

/** A collection whose index over a field and `dueAt` is a queue for each value of the field. */
export type DueIndex = {
  readonly table: string;
  readonly field: Field;
  readonly dueAt: Field;
  /** More than one queue can have taken and want. */
  readonly rowsMax: number;
};

/** Before every time: what the rows without one are told apart by. */
const everyTime = '0001-01-01T00:00:00.000Z';

/** Deliveries by endpoint: as many as its window, as many answers being written down, and a buffer. */
export const dueDeliveries: DueIndex = dueIndexOf(deliveriesCollection, 'endpointId', 8192);

/** @throws RangeError where the collection has no such field */
export function dueIndexOf({ name: table, fields }: Collection, by: string, rowsMax: number): DueIndex {
  const [field, dueAt] = [fields.get(by), fields.get('dueAt')];
  if (field === undefined || dueAt === undefined) throw new RangeError(`${table} is no queue by ${by}`);
  return { table, field, dueAt, rowsMax };
}

export class DueRows {
  readonly #plan: Plan;
  readonly #rowsMax: number;

  /** @param queue the value of the index's field */
  constructor(store: Pick<Store, 'plan'>, { table, field, dueAt, rowsMax }: DueIndex, queue: string) {
    const filters: readonly Filter[] = [
      { op: 'eq', field, value: queue },
      { op: 'gte', field: dueAt, value: everyTime },
    ];
    const sort: readonly Sort[] = [
      { field: dueAt, direction: 'asc' },
      { field: idField, direction: 'asc' },
    ];
    this.#plan = store.plan({ table, filter: { op: 'and', filters }, sort, limit: rowsMax });
    this.#rowsMax = rowsMax;
  }

  first(count: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'start' }, Math.min(count, this.#rowsMax));
  }

  /** The one whose time came last before the moment, in milliseconds since the epoch; none or one row. */
  lastBefore(at: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'before', key: [new Date(at).toISOString(), ''] }, 1);
  }
}
