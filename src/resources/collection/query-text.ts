/**
 * The three media types of QUERY content (§4.9.2), and the compiler behind each.
 */
import { type JsonLimits, parseJson } from '../../http/syntax/json.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { Compiled, QueryLimits, Target } from '../query/asked.ts';
import { compileForm } from '../query/form.ts';
import { compileJson } from '../query/json.ts';

/** In the order of Accept-Query, where it means nothing. */
export const queryTypes: readonly string[] = [
  'application/x-www-form-urlencoded',
  'application/json',
  'application/sql',
];

/** The content of a QUERY with the compiler of its media type. */
export type QueryText = {
  readonly mediaType: string;
  readonly text: string;
  readonly compile: (text: string, target: Target, limits: QueryTextLimits) => Compiled;
};

export type QueryTextLimits = QueryLimits & {
  readonly json: JsonLimits;
  /** Octets of content. */
  readonly queryBytesMax: number;
};

/**
 * Finds the compiler. The one for SQL is loaded when the first SQL comes: its parser is 5 MB of memory and
 * 20 ms of start that most programs never need.
 */
export function readQueryText(mediaType: string, text: string): MaybePromise<QueryText> {
  if (mediaType === 'application/json') return { mediaType, text, compile: compileJsonText };
  if (mediaType !== 'application/sql') return { mediaType, text, compile: compileFormText };
  return import('../query/sql.ts').then(({ compileSql }) => ({ mediaType, text, compile: compileSql }));
}

function compileJsonText(text: string, target: Target, limits: QueryTextLimits): Compiled {
  const parsed = parseJson(text, limits.json);
  return parsed.ok
    ? compileJson(parsed.value, target, limits)
    : malformed(`malformed JSON at offset ${parsed.offset}: ${parsed.message}`);
}

function compileFormText(text: string, target: Target, limits: QueryTextLimits): Compiled {
  const pairs = parseQueryString(text);
  return pairs === undefined ? malformed('malformed form') : compileForm(pairs, target, limits);
}

function malformed(message: string): Compiled {
  return { ok: false, faults: [{ kind: 'malformed', message }] };
}
