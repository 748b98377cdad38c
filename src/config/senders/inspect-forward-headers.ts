/**
 * Checks header fields that are said to go with a forwarded message. Those that frame it, belong to the connection or say who signed it are
 * not the configuration's to say: the same as for endpoints.
 */
import { isRecord, kindOf } from '../inspection.ts';
import { reservedHeaderNames } from '../reserved-names.ts';
import { headerNameOf, type Refuse } from './refuse.ts';

const headersMax = 32;
const valueCharactersMax = 4096;

/** What tells where a message came from. */
const ownPrefix = 'comity-';

/** RFC 9110 §5.5. */
const fieldValue = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/;

export function inspectForwardHeaders(written: unknown, refuse: Refuse): Readonly<Record<string, string>> {
  if (!isRecord(written)) {
    refuse(`forward.headers must be an object, not ${kindOf(written)}`);
    return {};
  }
  const entries = Object.entries(written);
  if (entries.length > headersMax) refuse(`forward.headers may hold ${headersMax} fields at most`);
  const headers = new Map<string, string>();
  for (const [field, value] of entries) {
    const name = headerNameOf(field);
    const place = `forward.headers["${field}"]`;
    if (name === undefined) refuse(`${place} is not the name of a header field`);
    else if (reservedHeaderNames.has(name) || name.startsWith(ownPrefix))
      refuse(`${place} is a field that the program makes itself`);
    else if (headers.has(name)) refuse(`${place} is there twice`);
    else if (typeof value !== 'string' || value.length > valueCharactersMax || !fieldValue.test(value)) {
      refuse(
        `${place} must be a text of at most ${valueCharactersMax} characters that a header field can hold`,
      );
    } else headers.set(name, value);
  }
  return Object.fromEntries(headers);
}
