/** Checks how a sender's messages are processed (§4.14.5): by a handler or by forwarding, on which schedule, and how many at once. */
import { isRecord, kindOf } from '../inspection.ts';
import { reservedHeaderNames } from '../reserved-names.ts';
import { type ForwardDeclaration, type HandOnTo, handOnScheduleDefault } from '../senders.ts';
import { isSchedule, scheduleRule } from '../webhook-schedules.ts';
import { headerNameOf, isWhole, membersOf, type Refuse } from './refuse.ts';

type Written = Readonly<Record<string, unknown>>;

const handlerParametersMax = 2;
const inFlightMost = 1024;
const urlCharactersMax = 2000;
const schemes = ['standard', 'timestamped', 'plain'] as const;
const forwardMembers: ReadonlySet<string> = new Set<keyof ForwardDeclaration>([
  'url',
  'scheme',
  'secretVariable',
  'headers',
]);

/** @param variableOf resolves the variable of the secret that signs forwarded messages */
export function inspectHandOn(
  { handler, forward }: Written,
  variableOf: (written: unknown) => string,
  refuse: Refuse,
): HandOnTo {
  if (handler !== undefined && forward !== undefined) {
    refuse('handler and forward must not both be set; a handler can forward messages itself');
  }
  if (handler !== undefined) {
    inspectHandler(handler, refuse);
    return { kind: 'handler' };
  }
  return forward === undefined ? { kind: 'inbox' } : inspectForward(forward, variableOf, refuse);
}

export function inspectSchedule(written: unknown, refuse: Refuse): readonly number[] {
  if (written === undefined) return handOnScheduleDefault;
  if (isSchedule(written)) return written;
  refuse(`schedule ${scheduleRule}`);
  return [];
}

export function inspectInFlight(written: unknown, refuse: Refuse): number | undefined {
  if (written === undefined || isWhole(written, 1, inFlightMost)) return written;
  refuse(`inFlightMax must be a whole number from 1 to ${inFlightMost}`);
  return undefined;
}

function inspectHandler(handler: unknown, refuse: Refuse): void {
  if (typeof handler !== 'function') {
    refuse(`handler must be a function of ({ message, resources }), not ${kindOf(handler)}`);
  } else if (handler.length > handlerParametersMax) {
    refuse(`handler has ${handler.length} parameters, and is given two: message and resources`);
  }
}

function inspectForward(
  written: unknown,
  variableOf: (written: unknown) => string,
  refuse: Refuse,
): HandOnTo {
  const forward = membersOf('forward', written, forwardMembers, refuse) ?? {};
  const { url: text, scheme = 'standard', secretVariable, headers = {} } = forward;
  const url = typeof text === 'string' && text.length <= urlCharactersMax ? URL.parse(text) : null;
  // A value that is not an object is reported already.
  if (isRecord(written) && (url === null || !isReachable(url))) {
    refuse('forward.url must be an http or https URL without user, password and fragment');
  }
  const known = schemes.find((name) => name === scheme);
  if (known === undefined) refuse(`forward.scheme must be one of ${schemes.join(', ')}`);
  return {
    kind: 'forward',
    url: url ?? new URL('http://localhost'),
    scheme: known ?? 'standard',
    secretVariable: variableOf(secretVariable),
    headers: inspectForwardHeaders(headers, refuse),
  };
}

/** A password would appear in logs; it belongs in `headers`. */
function isReachable({ protocol, username, password, hash }: URL): boolean {
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
function inspectForwardHeaders(written: unknown, refuse: Refuse): Readonly<Record<string, string>> {
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
