/** Checks who a sender's messages are said to be handed on to (§4.14.5), how often that is tried, and how many at once. */
import { isRecord, kindOf } from '../inspection.ts';
import { type ForwardDeclaration, type HandOnTo, handOnScheduleDefault } from '../senders.ts';
import { isSchedule, scheduleRule } from '../webhook-schedules.ts';
import { inspectForwardHeaders } from './inspect-forward-headers.ts';
import { isWhole, membersOf, type Refuse } from './refuse.ts';

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

/** @param variableOf takes what is written as the variable of the secret that forwarding signs with */
export function inspectHandOn(
  { handler, forward }: Written,
  variableOf: (written: unknown) => string,
  refuse: Refuse,
): HandOnTo {
  if (handler !== undefined && forward !== undefined) {
    refuse('handler and forward exclude each other; a handler may send on what it likes');
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
    refuse(`handler must be a function of (message, resources), not ${kindOf(handler)}`);
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
  // What is no object was told of.
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

/** A password would stand in logs; it goes into `headers`. */
function isReachable({ protocol, username, password, hash }: URL): boolean {
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '' && hash === '';
}
