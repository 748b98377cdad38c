/** A list as a handler asks for it: what a QUERY with this JSON content would answer (§4.9), of what is committed. */
import type { Principal } from '../../../model/principal.ts';
import { alteredCursor, queryProblem } from '../../collection/fault-problem.ts';
import { type QueryTextLimits, readQueryText } from '../../collection/query-text.ts';
import type { Served } from '../../collection/served.ts';
import { refusalOf } from './refusal.ts';
import { textOf } from './write-resource.ts';

/**
 * @param query the members of a JSON query, or their text
 * @returns JSON: `{"items": [...], "nextCursor"}`
 * @throws ResourceRefused
 */
export async function listPage(
  { listing }: Served,
  principal: Principal,
  query: unknown,
  limits: QueryTextLimits,
): Promise<string> {
  const { mediaType, text, compile } = await readQueryText('application/json', textOf(query ?? {}));
  const prepared = listing.prepare(`${mediaType} ${text}`, principal, (target) =>
    compile(text, target, limits),
  );
  if ('faults' in prepared) throw refusalOf(queryProblem(prepared.faults));
  const position = listing.position(prepared);
  if (position === undefined) throw refusalOf(alteredCursor);
  const { body } = await listing.page(prepared, principal, position);
  return body;
}
