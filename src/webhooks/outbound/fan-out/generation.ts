/**
 * The generation of the endpoints: the greatest number among the rows of its table, which are never changed. Every change of what is sent
 * where puts the next number in its own unit; a unit that has found its endpoints expects the next number absent.
 *
 * A number must not go while somebody could still be behind it: whoever knows generation 5 would not notice 6 and 7 if 7 had taken
 * 6 away. So numbers stay for a day, and whoever has not looked for an hour looks before it relies on what it knows (directory.ts).
 */
import { idField } from '../../../model/field.ts';
import { always, byId } from '../../../model/filter.ts';
import { keptRow } from '../../../store/kept-row.ts';
import type { Change, Plan, Row, Store } from '../../../store/store.ts';
import { endpointGenerationTable } from '../tables.ts';

export type Generation = {
  /** What a unit expects that relies on the endpoints of this generation. */
  readonly guard: Change;
  /** What a unit contains that ends it. @param at milliseconds since the epoch */
  next(at: number): readonly Change[];
};

export type GenerationReader = {
  /** The one that stands, made if there is none. @throws StoreUnavailable */
  read(): Promise<Generation>;
};

const table = endpointGenerationTable;
/** Numbers compare as texts. */
const digits = 15;
/** A day: nobody relies on what it knew that long ago. */
const keptMs = 86_400_000;
/** How many old numbers a change takes along, so that they get fewer even where each change makes one. */
const removedAtOnce = 2;

export function createGenerationReader(store: Store, clock: () => number): GenerationReader {
  const newest = store.plan({
    table,
    filter: always,
    sort: [{ field: idField, direction: 'desc' }],
    limit: 1,
  });
  // One more than may go: the newest never does.
  const oldest = store.plan({ table, filter: always, sort: byId, limit: removedAtOnce + 1 });

  return {
    async read() {
      for (;;) {
        const generation = await readOnce(newest, oldest);
        if (generation !== undefined) return generation;
        // Superseded: another process made it.
        await store.commit({ changes: [numberChange(1, clock())], events: [] });
      }
    },
  };
}

async function readOnce(newest: Plan, oldest: Plan): Promise<Generation | undefined> {
  const [[last], old] = await Promise.all([newest.rows({ from: 'start' }), oldest.rows({ from: 'start' })]);
  if (last === undefined) return undefined;
  const number = Number(last.id) + 1;
  const { id } = numberChange(number, 0);
  return {
    guard: { table, id, expect: { absent: true }, next: null },
    next: (at) => [
      numberChange(number, at),
      ...old.filter((row) => row.id !== last.id && row.createdAt < at - keptMs).map(removal),
    ],
  };
}

function numberChange(number: number, at: number): Change {
  const id = String(number).padStart(digits, '0');
  return { table, id, expect: { absent: true }, next: keptRow('{}', null, at, at) };
}

function removal({ id, rev }: Row): Change {
  return { table, id, expect: { rev }, next: null };
}
