/** Checks how a sender's messages are processed (§4.14.5): by a handler or by forwarding, on which schedule, and how many at once. */
import { type TInteger, type TOptional, Type } from 'typebox';
import { isRecord, kindOf } from '../inspection.ts';
import { reservedHeaderNames } from '../reserved-names.ts';
import type { HandOnTo } from '../senders.ts';
import {
  choiceOf,
  inspectShape,
  isHeaderName,
  type Reporter,
  textThat,
  unshaped,
  wholeWithin,
} from '../shape.ts';

type Written = Readonly<Record<string, unknown>>;

const handlerParametersMax = 2;
const inFlightMost = 1024;
const urlCharactersMax = 2000;

export const inFlightShape: TOptional<TInteger> = Type.Optional(wholeWithin(1, inFlightMost));

const forwardShape = Type.Object({
  url: textThat(isReachable, {
    must: 'must be an http or https URL without user, password and fragment',
  }),
  scheme: Type.Optional(choiceOf(['standard', 'timestamped', 'plain'])),
  ...unshaped('secretVariable', 'headers'),
});

/** @param variableOf resolves the variable of the secret that signs forwarded messages */
export function inspectHandOn(
  { handler, forward }: Written,
  variableOf: (written: unknown) => string,
  refuse: Reporter,
): HandOnTo {
  if (handler !== undefined && forward !== undefined) {
    refuse('handler and forward must not both be set; a handler can forward messages itself');
  }
  if (handler !== undefined) {
    if (typeof handler === 'function' && handler.length > handlerParametersMax)
      refuse(`handler has ${handler.length} parameters, and is given two: message and resources`);
    return { kind: 'handler' };
  }
  return forward === undefined ? { kind: 'inbox' } : inspectForward(forward, variableOf, refuse);
}

function inspectForward(
  written: unknown,
  variableOf: (written: unknown) => string,
  refuse: Reporter,
): HandOnTo {
  const { url, scheme, secretVariable, headers } =
    inspectShape(forwardShape, written, 'forward', refuse) ?? {};
  return {
    kind: 'forward',
    url: new URL(url ?? 'http://localhost'),
    scheme: scheme ?? 'standard',
    secretVariable: variableOf(secretVariable),
    headers: headers === undefined ? {} : inspectForwardHeaders(headers, refuse),
  };
}

/** A password would appear in logs; it belongs in `headers`. */
function isReachable(text: string): boolean {
  const url = text.length <= urlCharactersMax ? URL.parse(text) : null;
  if (url === null) return false;
  const { protocol, username, password, hash } = url;
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '' && hash === '';
}

const headersMax = 32;
const valueCharactersMax = 4096;

/** Comity's own fields, which identify the origin of a message. */
const ownPrefix = 'comity-';

/** RFC 9110 §5.5. */
const fieldValue = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/;

/**
 * Checks the header fields of forwarded messages. As for endpoints, fields that frame the message, belong to the connection or identify the
 * signer are refused.
 */
function inspectForwardHeaders(written: unknown, refuse: Reporter): Readonly<Record<string, string>> {
  if (!isRecord(written)) {
    refuse(`forward.headers must be an object, not ${kindOf(written)}`);
    return {};
  }
  const entries = Object.entries(written);
  if (entries.length > headersMax) refuse(`forward.headers may hold ${headersMax} fields at most`);
  const headers = new Map<string, string>();
  for (const [field, value] of entries) {
    const name = field.toLowerCase();
    const place = `forward.headers["${field}"]`;
    if (!isHeaderName(field)) refuse(`${place} is not the name of a header field`);
    else if (reservedHeaderNames.has(name) || name.startsWith(ownPrefix))
      refuse(`${place} is a field that Comity sets itself`);
    else if (headers.has(name)) refuse(`${place} is declared twice`);
    else if (typeof value !== 'string' || value.length > valueCharactersMax || !fieldValue.test(value)) {
      refuse(
        `${place} must be a text of at most ${valueCharactersMax} characters that a header field can hold`,
      );
    } else headers.set(name, value);
  }
  return Object.fromEntries(headers);
}
