/**
 * `Content-Encoding`: RFC 9110 §8.4. Only names; whether a coding can be undone is decided where bodies are read.
 */
import { canonicalCoding } from './accept-encoding.ts';
import { parseFieldList } from './field-list.ts';

/** The codings in the order they were applied, in lower case, `x-gzip` as `gzip`; undefined when malformed. */
export function parseContentCoding(value: string): readonly string[] | undefined {
  return parseFieldList(value)?.map(canonicalCoding);
}
