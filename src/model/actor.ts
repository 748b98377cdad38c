/**
 * Who caused an event or a security fact (§2.9): the actor, and the request in which it acted. An event holds both
 * before its `data`, where they are found, and cut out again, without parsing the resource.
 */
import { operatorId, type Principal, type Scheme } from './principal.ts';

/** Closed: a new kind is a change of the interface. */
export const actorKinds = [
  /** An account: by password, access token or session. */
  'user',
  /** An API key; `id` is the principal that it acts for, `keyId` the key. */
  'key',
  /** The administrator key. */
  'administrator-key',
  /** A principal of a trusted issuer. */
  'issuer',
  /** A session of a consumer's portal; `id` is the principal of the tenant. */
  'portal',
  /** A caller without a credential; `id` is null. */
  'anonymous',
  /** A handler of received webhooks, a subscriber, a job; `id` is its name. */
  'handler',
  'subscriber',
  'job',
  /** Comity itself; `id` is null. */
  'system',
] as const;

export type ActorKind = (typeof actorKinds)[number];

export type Actor = {
  readonly kind: ActorKind;
  readonly id: string | null;
  readonly keyId?: string;
};

/** The credential of a caller: its scheme, and the API key that was used. */
export type Used = { readonly scheme: Scheme; readonly key: string | null };

export const systemActor: Actor = { kind: 'system', id: null };

/** @param used undefined for a principal that another program vouches for, such as the one that embeds Comity */
export function actorOf(principal: Principal, used: Used | undefined): Actor {
  if (principal.kind === 'anonymous') return { kind: 'anonymous', id: null };
  const { id } = principal;
  if (used?.scheme === 'key' && used.key !== null) return { kind: 'key', id, keyId: used.key };
  if (id === operatorId) return { kind: 'administrator-key', id };
  return { kind: used?.scheme === 'issuer' || used?.scheme === 'portal' ? used.scheme : 'user', id };
}

/**
 * Actor and request as the members of an event.
 * @param requestId null without a request @param traceparent the span in which it was caused, if it was traced
 */
export function causeText(
  { kind, id, keyId }: Actor,
  requestId: string | null,
  traceparent?: string | undefined,
): string {
  const key = keyId === undefined ? '' : `,"keyId":${JSON.stringify(keyId)}`;
  const request = requestId === null ? '' : `,"requestId":${JSON.stringify(requestId)}`;
  const trace = traceparent === undefined ? '' : `,"traceparent":"${traceparent}"`;
  return `,"actor":{"kind":"${kind}","id":${JSON.stringify(id)}${key}}${request}${trace}`;
}

/** How much of an event's cause a reader is shown: all, the actor without key and request, or nothing. */
export type CauseShown = 'whole' | 'who' | 'none';

/** Begins the data of every event. Before it are only texts and numbers, in whose JSON it cannot occur (model/event.ts). */
const dataBegins = ',"data":{';
const causeBegins = ',"actor":{';

/** The event with its cause; one that has a cause already keeps it. */
export function withCause(doc: string, cause: string): string {
  const at = doc.indexOf(dataBegins);
  if (at < 0 || startOfCause(doc, at) >= 0) return doc;
  return `${doc.slice(0, at)}${cause}${doc.slice(at)}`;
}

/** The event as webhooks send it. */
export function withoutCause(doc: string): string {
  const at = doc.indexOf(dataBegins);
  const start = startOfCause(doc, at);
  return start < 0 ? doc : `${doc.slice(0, start)}${doc.slice(at)}`;
}

export type Cause = { readonly actor: Actor; readonly requestId?: string; readonly traceparent?: string };

const tracedAt = ',"traceparent":"';

/** The span in which an event was caused. */
export function traceparentOf(doc: string): string | undefined {
  const at = doc.lastIndexOf(tracedAt, Math.max(doc.indexOf(dataBegins), 0));
  if (at < 0) return undefined;
  const start = at + tracedAt.length;
  return doc.slice(start, doc.indexOf('"', start));
}

/** The actor and the request of an event; undefined for an event without them. */
export function causeOf(doc: string): Cause | undefined {
  const at = doc.indexOf(dataBegins);
  const start = startOfCause(doc, at);
  return start < 0 ? undefined : (JSON.parse(`{${doc.slice(start + 1, at)}}`) as Cause);
}

/** The event with as much of its cause as the reader is shown. */
export function withCauseShown(doc: string, { actor: { kind, id } }: Cause, shown: CauseShown): string {
  if (shown === 'whole') return doc;
  const rest = withoutCause(doc);
  return shown === 'none' ? rest : withCause(rest, causeText({ kind, id }, null));
}

function startOfCause(doc: string, dataAt: number): number {
  return dataAt < 0 ? -1 : doc.slice(0, dataAt).indexOf(causeBegins);
}
