/**
 * The three media types of QUERY content (§4.9.2), and the compiler behind each.
 */
import { type JsonLimits, parseJson } from '../../http/syntax/json.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Compiled, QueryLimits, Target } from '../query/asked.ts';
import { compileForm } from '../query/form.ts';
import { compileJson } from '../query/json.ts';
import { compileSql } from '../query/sql.ts';

/** In the order of Accept-Query, where it means nothing. */
export const queryTypes: readonly string[] = [
  'application/x-www-form-urlencoded',
  'application/json',
  'application/sql',
];

export type QueryText = { readonly mediaType: string; readonly text: string };

export type QueryTextLimits = QueryLimits & { readonly json: JsonLimits };

export function compileQueryText(query: QueryText, target: Target, limits: QueryTextLimits): Compiled {
  if (query.mediaType === 'application/sql') return compileSql(query.text, target, limits);
  if (query.mediaType === 'application/json') {
    const parsed = parseJson(query.text, limits.json);
    return parsed.ok
      ? compileJson(parsed.value, target, limits)
      : malformed(`malformed JSON at offset ${parsed.offset}: ${parsed.message}`);
  }
  const pairs = parseQueryString(query.text);
  return pairs === undefined ? malformed('malformed form') : compileForm(pairs, target, limits);
}

function malformed(message: string): Compiled {
  return { ok: false, faults: [{ kind: 'malformed', message }] };
}
