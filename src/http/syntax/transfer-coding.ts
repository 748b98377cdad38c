/**
 * `Transfer-Encoding`: RFC 9112 §6.1 and §7. `chunked` is the only coding we understand; all else is 501.
 *
 * Empty list elements and parameters, harmless by the grammar, are refused here: this field decides where a
 * message ends, and two readers that disagree on it are the substance of request smuggling (§11.2).
 */
import { trimWhitespace } from './token.ts';

/** True when the value is `chunked`, once, and nothing more. */
export function isUnderstoodTransferCoding(value: string): boolean {
  return value === 'chunked' || trimWhitespace(value).toLowerCase() === 'chunked';
}
