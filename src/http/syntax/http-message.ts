/**
 * The `message/http` content of a TRACE response (RFC 9110 §9.3.8, RFC 9112 §2.1 and §10.1): the request line and the fields as received,
 * without those that must not be reflected. A TRACE has no content, so the message ends with the empty line.
 */
import { isToken } from './token.ts';

/** A received request: `rawFields` is flat (name, value, name, value), `withheld` has lower-case names. */
export type ReceivedMessage = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly rawFields: readonly string[];
  readonly withheld: ReadonlySet<string>;
};

/** Writes the message, without withheld fields, pseudo-fields of HTTP/2 and others whose name is not a token. */
export function formatHttpMessage(message: ReceivedMessage): string {
  const { method, target, version, rawFields, withheld } = message;
  let text = `${withoutBreaks(method)} ${withoutBreaks(target)} ${withoutBreaks(version)}\r\n`;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    if (!isToken(name) || withheld.has(name.toLowerCase())) continue;
    text += `${name}: ${withoutBreaks(rawFields[at + 1] ?? '')}\r\n`;
  }
  return `${text}\r\n`;
}

/** RFC 9110 §5.5: CR, LF and NUL become a space, so that one field cannot be read as two. */
function withoutBreaks(text: string): string {
  if (!text.includes('\r') && !text.includes('\n') && !text.includes('\0')) return text;
  return text.replaceAll('\r', ' ').replaceAll('\n', ' ').replaceAll('\0', ' ');
}
