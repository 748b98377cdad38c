/** The messages of one sender that have a time, the earliest first: a range of one index, whatever stands behind it. */
import type { Field } from '../../../model/field.ts';
import { idField } from '../../../model/field.ts';
import type { Filter, Sort } from '../../../model/filter.ts';
import type { MaybePromise, Plan, Row, Store } from '../../../store/store.ts';
import { receivedCollection } from '../collections.ts';

/** More than a sender can have taken and want: the most that may be under way at once, and a buffer. */
export const dueMessagesMax = 4096;

/** Before every time: what the rows without one are told apart by. */
const everyTime = '0001-01-01T00:00:00.000Z';

const senderName = fieldOf('sender');
const dueAt = fieldOf('dueAt');
const byDueAt: readonly Sort[] = [
  { field: dueAt, direction: 'asc' },
  { field: idField, direction: 'asc' },
];

export class DueMessages {
  readonly #plan: Plan;

  constructor(store: Pick<Store, 'plan'>, sender: string) {
    const filters: readonly Filter[] = [
      { op: 'eq', field: senderName, value: sender },
      { op: 'gte', field: dueAt, value: everyTime },
    ];
    this.#plan = store.plan({
      table: receivedCollection.name,
      filter: { op: 'and', filters },
      sort: byDueAt,
      limit: dueMessagesMax,
    });
  }

  first(count: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'start' }, Math.min(count, dueMessagesMax));
  }

  /** The one whose time came last before the moment, in milliseconds since the epoch; none or one row. */
  lastBefore(at: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'before', key: [new Date(at).toISOString(), ''] }, 1);
  }
}

function fieldOf(name: string): Field {
  const field = receivedCollection.fields.get(name);
  if (field === undefined) throw new RangeError(`received messages have no field ${name}`);
  return field;
}
