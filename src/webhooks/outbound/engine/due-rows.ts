/** The deliveries of one endpoint that have a time, the earliest first: a range of one index, whatever stands behind it. */
import type { Field } from '../../../model/field.ts';
import { idField } from '../../../model/field.ts';
import type { Filter, Sort } from '../../../model/filter.ts';
import type { MaybePromise, Plan, Row, Store } from '../../../store/store.ts';
import { deliveriesCollection } from '../collections.ts';

/** More than an endpoint can have taken and want: its window, as many answers being written down, and a buffer. */
export const dueRowsMax = 8192;

/** Before every time: what the rows without one are told apart by. */
const everyTime = '0001-01-01T00:00:00.000Z';

const endpointId = fieldOf('endpointId');
const dueAt = fieldOf('dueAt');
const byDueAt: readonly Sort[] = [
  { field: dueAt, direction: 'asc' },
  { field: idField, direction: 'asc' },
];

export class DueRows {
  readonly #plan: Plan;

  constructor(store: Pick<Store, 'plan'>, endpoint: string) {
    const filters: readonly Filter[] = [
      { op: 'eq', field: endpointId, value: endpoint },
      { op: 'gte', field: dueAt, value: everyTime },
    ];
    this.#plan = store.plan({
      table: deliveriesCollection.name,
      filter: { op: 'and', filters },
      sort: byDueAt,
      limit: dueRowsMax,
    });
  }

  first(count: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'start' }, Math.min(count, dueRowsMax));
  }

  /** The one whose time came last before the moment, in milliseconds since the epoch; none or one row. */
  lastBefore(at: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'before', key: [new Date(at).toISOString(), ''] }, 1);
  }
}

function fieldOf(name: string): Field {
  const field = deliveriesCollection.fields.get(name);
  if (field === undefined) throw new RangeError(`deliveries have no field ${name}`);
  return field;
}
