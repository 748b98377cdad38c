/**
 * Media types: RFC 9110 §8.3.1. Type and parameter names are lower-cased, parameter values kept as sent (the parameter decides whether their
 * case counts). A repeated parameter is refused.
 */
import { formatParameters, readParameters, skipWhitespace, tokenEnd } from './field-value.ts';

/** A media type; `type` is `type/subtype` in lower case. */
export type MediaType = { readonly type: string; readonly parameters: ReadonlyMap<string, string> };

const PLAIN_JSON: MediaType = { type: 'application/json', parameters: new Map() };

/** Reads the value of a `Content-Type`; undefined if it is not one media type. */
export function parseMediaType(value: string): MediaType | undefined {
  if (value === 'application/json') return PLAIN_JSON;
  const start = skipWhitespace(value, 0);
  const end = mediaTypeEnd(value, start);
  if (end === -1) return undefined;
  const parameters = new Map<string, string>();
  const parametersEnd = readParameters(value, end, parameters);
  if (parametersEnd === -1 || skipWhitespace(value, parametersEnd) !== value.length) return undefined;
  return { type: value.slice(start, end).toLowerCase(), parameters };
}

/** Writes a media type; parameter values are quoted where necessary. */
export function formatMediaType(mediaType: MediaType): string {
  return mediaType.type + formatParameters(mediaType.parameters);
}

/** The index after `type "/" subtype` at `from`, or -1. The wildcard ranges fit too, since `*` is a tchar. */
export function mediaTypeEnd(value: string, from: number): number {
  const slash = tokenEnd(value, from);
  if (slash === from || value.charCodeAt(slash) !== 0x2f) return -1;
  const end = tokenEnd(value, slash + 1);
  return end === slash + 1 ? -1 : end;
}
