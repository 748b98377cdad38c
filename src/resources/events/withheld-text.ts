/**
 * Text of the log that its reader may no longer read (§6.10): an event shows its resource only if the reader may read the resource as it is
 * now; a deleted one as it was last. Of others the id alone is shown, so that pages and counts stay what they are.
 *
 * It costs a point read for each resource of a page, and only where the rule of the collection depends on the resource.
 */
import { memberSpan, valueAt } from '../../http/syntax/json-members.ts';
import { permission, permits } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import { type Field, idField } from '../../model/field.ts';
import type { Principal } from '../../model/principal.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import { eventsTable, type MaybePromise, type Row, type Store } from '../../store/store.ts';

/** Says for each event if its text is withheld. */
export type Withholds = (
  events: readonly { readonly type: string; readonly doc: string }[],
) => MaybePromise<readonly boolean[]>;

/** Undefined for a principal whose rules do not depend on resources. */
export type WithholdsFrom = (principal: Principal) => Withholds | undefined;

type Reads = Pick<Store, 'read' | 'plan'>;

export function createWithholds(store: Reads, collections: Iterable<Collection>): WithholdsFrom {
  const byType = new Map<string, Collection>();
  for (const collection of collections) {
    for (const change of ['created', 'updated', 'deleted'] as const)
      byType.set(eventType(collection.name, change), collection);
  }
  return (principal) => {
    const depends = (collection: Collection): boolean =>
      permission(collection.access.read, 'read', principal) === 'depends';
    const judged = new Map([...byType].filter(([, collection]) => depends(collection)));
    if (judged.size === 0) return undefined;
    return (events) => {
      if (!events.some(({ type }) => judged.has(type))) return events.map(() => false);
      return withheldOf(store, principal, judged, events);
    };
  };
}

async function withheldOf(
  store: Reads,
  principal: Principal,
  judged: ReadonlyMap<string, Collection>,
  events: readonly { readonly type: string; readonly doc: string }[],
): Promise<readonly boolean[]> {
  const known = new Map<string, Promise<boolean>>();
  return Promise.all(
    events.map(({ type, doc }) => {
      const collection = judged.get(type);
      const id = collection === undefined ? undefined : valueAt(doc, ['data', 'object', 'id']);
      if (collection === undefined || typeof id !== 'string') return false;
      const key = `${collection.name} ${id}`;
      const found = known.get(key) ?? isWithheld(store, principal, collection, id);
      known.set(key, found);
      return found;
    }),
  );
}

async function isWithheld(
  store: Reads,
  principal: Principal,
  collection: Collection,
  id: string,
): Promise<boolean> {
  const state = (await store.read(collection.name, id)) ?? (await lastState(store, collection.name, id));
  if (state === undefined) return false;
  const member = (name: string): unknown => valueAt(state.doc, [name]);
  const rows = new RelatedRows(store);
  const subject = { owner: state.owner, member, related: rows.find };
  return !(await judged(rows, () => permits(collection.access.read, 'read', principal, subject)));
}

const collectionField: Field = { name: 'collection', path: [], type: 'string', column: 'collection' };
const documentField: Field = { name: 'document', path: [], type: 'string', column: 'document' };
const revField: Field = { name: 'rev', path: [], type: 'integer', column: 'rev' };

/** The resource as the newest of its events has it; undefined if its events name no resource, as in earlier versions. */
export async function lastState(
  store: Pick<Store, 'read' | 'plan'>,
  collection: string,
  id: string,
): Promise<Pick<Row, 'doc' | 'owner'> | undefined> {
  const plan = store.plan({
    table: eventsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'eq', field: collectionField, value: collection },
        { op: 'eq', field: documentField, value: id },
      ],
    },
    sort: [
      { field: revField, direction: 'desc' },
      { field: idField, direction: 'desc' },
    ],
    limit: 1,
  });
  const [doc] = (await plan.page({ from: 'start' })).docs;
  const object = doc === undefined ? undefined : objectSpan(doc);
  if (doc === undefined || object === undefined) return undefined;
  const row = await store.read(eventsTable, String(valueAt(doc, ['id'])));
  return { doc: doc.slice(object.start, object.end), owner: row?.owner ?? null };
}

function objectSpan(doc: string): { readonly start: number; readonly end: number } | undefined {
  const data = memberSpan(doc, 'data');
  return data === undefined ? undefined : memberSpan(doc, 'object', data.start);
}

/** The event with nothing of its resource but the id. */
export function withoutText(doc: string): string {
  const object = objectSpan(doc);
  if (object === undefined) return doc;
  const id = valueAt(doc, ['data', 'object', 'id']);
  return `${doc.slice(0, object.start)}${JSON.stringify({ id })}${doc.slice(object.end)}`;
}
