/**
 * `Transfer-Encoding`: RFC 9112 §6.1 and §7. `chunked` is the only supported coding; all else is 501. Empty list elements and parameters,
 * legal in the grammar, are refused here: this field decides where a message ends, and two readers that disagree on it enable request
 * smuggling (RFC 9112 §11.2).
 */
import { trimWhitespace } from './token.ts';

export function isUnderstoodTransferCoding(value: string): boolean {
  return value === 'chunked' || trimWhitespace(value).toLowerCase() === 'chunked';
}
