/**
 * Header fields that an endpoint may add to its deliveries, and those that are not its to say: what frames the message, what belongs to
 * the connection (RFC 9110 §7.6.1), and what a receiver believes of the sender (§5.6).
 */
import { reservedHeaderNames } from '../../../config/reserved-names.ts';
import { isToken } from '../../../http/syntax/token.ts';

export const headerNameCharactersMax = 128;

export type HeaderBounds = { readonly headersMax: number; readonly valueCharactersMax: number };

/** Why an endpoint may not have these; undefined: it may. Names that differ in case alone are the same field. */
export function refuseHeaders(
  headers: Readonly<Record<string, string>>,
  { headersMax, valueCharactersMax }: HeaderBounds,
): string | undefined {
  const entries = Object.entries(headers);
  if (entries.length > headersMax) return `there must be at most ${headersMax} header fields`;
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, headerNameCharactersMax));
    if (name.length > headerNameCharactersMax || !isToken(name))
      return `${shown} is not the name of a header field`;
    const folded = name.toLowerCase();
    if (reservedHeaderNames.has(folded)) return `${shown} is a field that the sender makes itself`;
    if (seen.has(folded)) return `${shown} is there twice`;
    seen.add(folded);
    if (value.length > valueCharactersMax)
      return `the value of ${shown} has more than ${valueCharactersMax} characters`;
    if (!isFieldValue(value)) return `the value of ${shown} has a character that no header field can hold`;
  }
  return undefined;
}

/** Names and values in turn of what may be sent, whatever was stored. */
export function ownFields(headers: Readonly<Record<string, string>> | undefined): readonly string[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    const isOwn = isToken(name) && !reservedHeaderNames.has(name.toLowerCase()) && isFieldValue(value);
    return isOwn ? [name, value] : [];
  });
}

/** RFC 9110 §5.5: visible ASCII, spaces and tabs between. No line breaks and no NUL, so a value cannot end its field. */
const fieldValue = /^[!-~](?:[\t -~]*[!-~])?$/;

function isFieldValue(value: string): boolean {
  return value === '' || fieldValue.test(value);
}
