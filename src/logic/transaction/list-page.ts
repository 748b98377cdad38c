/**
 * A list for a handler: what a QUERY with this JSON content would find (§4.9) once the unit is committed. Each resource
 * in it is then read by its id, so that it is guarded against changes like any read if the function writes it.
 */
import { tablesOf } from '../../model/filter.ts';
import type { Principal } from '../../model/principal.ts';
import { alteredCursor, queryProblem } from '../../resources/collection/fault-problem.ts';
import type { ListPage } from '../../resources/collection/list-page.ts';
import { type QueryTextLimits, readQueryText } from '../../resources/collection/query.ts';
import type { Served } from '../../resources/collection/served.ts';
import { refusalOf } from './asking.ts';
import type { Overlay } from './overlay.ts';
import { textOf } from './write-resource.ts';

/** The JSON text of a query for the largest page that lists give. */
export function largestPage(query: unknown, { listLimitMax }: Pick<QueryTextLimits, 'listLimitMax'>): string {
  return JSON.stringify({ ...(JSON.parse(textOf(query)) as object), limit: listLimitMax });
}

/**
 * @param overlay has the writes of the function
 * @param query the members of a JSON query, or their text
 * @returns JSON: `{"items": [...], "nextCursor"}`
 * @throws ResourceRefused
 */
export async function listPage(
  { listing, collection, turns }: Served,
  overlay: Pick<Overlay, 'store' | 'hasWritten'>,
  principal: Principal,
  query: unknown,
  limits: QueryTextLimits,
): Promise<string> {
  const { mediaType, text, compile } = readQueryText('application/json', textOf(query ?? {}));
  const prepared = listing.prepare(`${mediaType} ${text}`, principal, (target) =>
    compile(text, target, limits),
  );
  if ('faults' in prepared) throw refusalOf(queryProblem(prepared.faults));
  const position = listing.position(prepared);
  if (position === undefined) throw refusalOf(alteredCursor);
  const { store } = overlay;
  const tables = [collection.name, ...tablesOf(prepared.asked.filter)];
  const { ids, nextCursor } = idsIn(
    tables.some((table) => overlay.hasWritten(table))
      ? await listing.pageFrom(store, prepared, principal, position)
      : await listing.page(prepared, principal, position, { party: '' }),
  );
  const docs: string[] = [];
  for (let at = 0; at < ids.length; at += readsPerTurn) {
    await turns.nextOfBegun();
    const some = ids.slice(at, at + readsPerTurn);
    const rows = await Promise.all(some.map((id) => store.read(collection.name, id)));
    for (const row of rows) if (row !== undefined && row.deletedAt === null) docs.push(row.doc);
  }
  return `{"items":[${docs.join(',')}],"nextCursor":${JSON.stringify(nextCursor)}}`;
}

/** Reads between which others have a turn: 5 ms of the embedded store, and a statement on PostgreSQL. */
const readsPerTurn = 250;

/** The ids of a page, so that its text is released before other requests take their turns. */
function idsIn({ body }: Pick<ListPage, 'body'>): Listed {
  const { items, nextCursor } = JSON.parse(body.toString()) as ListedPage;
  return { ids: items.map(({ id }) => id), nextCursor };
}

type Listed = { readonly ids: readonly string[]; readonly nextCursor: string | null };

type ListedPage = { readonly items: readonly { readonly id: string }[]; readonly nextCursor: string | null };
