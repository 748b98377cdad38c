/**
 * The audit trail: security facts, served as `/audit`. A fact about a change commits with the change. Any other fact, such as a failed
 * login, is queued for a background writer, which writes many in one unit and retries while the store is away. The queue is bounded, so
 * a flood of failed logins costs neither memory nor response time; facts beyond the bound are dropped and counted. Deliberately not
 * durable before the response: a crash may lose the last queued facts.
 */
import type { Request } from '../http/message.ts';
import type { CollectionOperation } from '../kernel/documentation.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import { type Ask, actorOfAsk } from '../kernel/resource.ts';
import type { ActorKind } from '../model/actor.ts';
import { searchText } from '../model/collection.ts';
import { operatorId } from '../model/principal.ts';
import { type ServedCollection, serveCollection } from '../resources/collection/serve-collection.ts';
import type { Serving } from '../resources/collection/served-collection.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, type NextRow, StoreUnavailable } from '../store/store.ts';
import { administratorsOnly } from './account-schemas.ts';
import { auditCollection, auditTable } from './account-tables.ts';

/** Facts of this time go into one unit. */
const gatherMs = 50;
const batchFactsMax = 500;
/** Pause between attempts while the store is away; doubles up to `retryMsMax`. */
const retryMs = 1000;
const retryMsMax = 30_000;
const closeMs = 5000;

type AuditTrail = Audit & { readonly waiting: () => number };

export function createAudit(services: Services): AuditTrail {
  const { newId, clock } = services;
  const writer = new Writer(services);
  const entry = (fact: AuditFact): Change => {
    const id = `aud_${newId()}`;
    return { table: auditTable, id, expect: { absent: true }, next: auditRow(id, fact, clock()) };
  };
  return {
    entry,
    note: (fact) => {
      if (writer.hasRoom()) writer.add(entry(fact));
      else writer.drop(1);
    },
    close: () => writer.close(),
    waiting: () => writer.waiting(),
  };
}

class Writer {
  readonly #store: Services['store'];
  readonly #observe: Services['observe'];
  readonly #waitingMax: number;
  #queue: Change[] = [];
  /** Kept unchanged for the retry: the store must recognise a unit whose response was lost. */
  #batch: readonly Change[] = [];
  #dropped = 0;
  #closed = false;
  #running: Promise<void> | undefined;
  #wake: () => void = () => undefined;

  constructor({ store, observe, settings }: Services) {
    this.#store = store;
    this.#observe = observe;
    this.#waitingMax = settings.auditWaitingMax;
  }

  waiting(): number {
    return this.#queue.length + this.#batch.length;
  }

  hasRoom(): boolean {
    return !this.#closed && this.waiting() < this.#waitingMax;
  }

  add(change: Change): void {
    this.#queue.push(change);
    this.#running ??= this.#run();
  }

  drop(facts: number): void {
    // Reported by the writer, once for many.
    this.#dropped += facts;
    if (this.#running === undefined) this.#reportDropped();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, closeMs);
    await Promise.race([this.#running, late]);
    clearTimeout(timer);
    this.#dropped += this.waiting();
    this.#queue = [];
    this.#batch = [];
    this.#reportDropped();
  }

  async #run(): Promise<void> {
    let failures = 0;
    await this.#pause(gatherMs);
    while (this.waiting() > 0) {
      if (this.#batch.length === 0) this.#batch = this.#queue.splice(0, batchFactsMax);
      if (await this.#write()) {
        failures = 0;
        this.#batch = [];
      } else {
        this.#reportDropped();
        // After `close` the writer retries only once.
        if (this.#closed && failures > 0) break;
        await this.#pause(Math.min(retryMs * 2 ** failures, retryMsMax));
        failures += 1;
      }
    }
    this.#reportDropped();
    this.#running = undefined;
  }

  /** True once the batch is done, written or dropped. */
  async #write(): Promise<boolean> {
    const batch = this.#batch;
    try {
      // Ids are new: a row that exists already comes from an attempt whose response was lost.
      await this.#store.commit({ changes: batch, events: [] });
      return true;
    } catch (error) {
      this.#observe({ kind: 'store-failed', what: 'audit trail', error });
      if (error instanceof StoreUnavailable) return false;
      // A defect of Comity; the same unit would fail again.
      this.#dropped += batch.length;
      return true;
    }
  }

  #pause(ms: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms).unref();
    this.#wake = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    this.#observe({ kind: 'audit-dropped', facts: this.#dropped });
    this.#dropped = 0;
  }
}

/** The members of an audit row that `q` searches; the collection that serves `/audit` must declare the same. */
export const auditSearchFields: readonly string[] = ['type', 'actor', 'subject', 'address'];

/** Ids of principals of trusted issuers are the longest. */
const idCharactersMax = 255;
const textCharactersMax = 200;
const membersMax = 16;
const itemsMax = 32;

/**
 * Builds a row of the audit trail. Absent values are left out, texts are bounded, and text that looks like a credential is dropped,
 * because the trail is kept for a year and is part of every backup.
 * @param at milliseconds since the epoch
 */
export function auditRow(id: string, fact: AuditFact, at: number): NextRow {
  const time = new Date(at).toISOString();
  const detail = detailOf(fact.detail);
  const fields: Record<string, unknown> = {
    type: fact.type,
    ...actorMember(fact),
    ...textMember('requestId', fact.requestId ?? null),
    ...textMember('subject', fact.subject),
    ...textMember('address', fact.address),
    ...(detail === undefined ? {} : { detail }),
  };
  return {
    doc: JSON.stringify({ id, ...fields, createdAt: time, updatedAt: time }),
    owner: null,
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
    search: searchText(auditSearchFields, { ...fields, ...textMember('actor', fact.actor) }),
    references: [],
  };
}

function actorMember({ actor, kind, keyId, address }: AuditFact): Readonly<Record<string, unknown>> {
  if (actor === null)
    return { actor: { kind: kind ?? (address === null ? 'system' : 'anonymous'), id: null } };
  const id = textMember('id', actor);
  return id.id === undefined
    ? {}
    : {
        actor: {
          kind: kind ?? (actor === operatorId ? 'administrator-key' : 'user'),
          ...id,
          ...textMember('keyId', keyId ?? null),
        },
      };
}

function textMember(name: string, text: string | null): Readonly<Record<string, string>> {
  if (text === null || isCredential(text)) return {};
  // The id of a principal of a trusted issuer, `<issuer>|<sub>`, may be long and random.
  return longRandom.test(text) && !text.includes('|') ? {} : { [name]: bounded(text, idCharactersMax) };
}

function detailOf(detail: AuditFact['detail']): Readonly<Record<string, unknown>> | undefined {
  const members = Object.entries(detail ?? {}).flatMap(([name, value]) => {
    const kept = memberName.test(name) ? detailValue(value) : undefined;
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members.slice(0, membersMax));
}

function detailValue(value: unknown): unknown {
  if (typeof value === 'string') return detailText(value);
  if (Array.isArray(value)) {
    return value
      .slice(0, itemsMax)
      .flatMap((item) => (typeof item === 'string' ? (detailText(item) ?? []) : []));
  }
  return typeof value === 'boolean' || Number.isFinite(value) ? value : undefined;
}

function detailText(text: string): string | undefined {
  return isCredential(text) || longRandom.test(text) ? undefined : bounded(text, textCharactersMax);
}

/** Keys (but not their short prefixes), tokens, cookies, header values that carry them, password hashes, private keys. */
const credential =
  /(?:\b(?:[sp]k|rt|p[ls]|whsec)_\S{5,}|\bses_\w{26}\.|\beyJ[\w-]{2,}|\b(?:basic|bearer|api-?key)\s+\S|\$argon2|-----BEGIN)/i;
/** Comity's ids have at most 30 characters, 128 bits in hex have 32, 256 bits in base64url 43. */
const longRandom = /[\w~+-]{32,}/;
const memberName = /^[a-z][A-Za-z0-9]{0,39}$/;
/** PostgreSQL refuses NUL; line breaks would break log lines and tables. */
const controls = /\p{Cc}/gu;

function isCredential(text: string): boolean {
  return credential.test(text);
}

/** Cutting may leave half of a surrogate pair, which `toWellFormed` replaces. */
function bounded(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax).toWellFormed().replace(controls, ' ');
}

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

/** `/audit`: a collection that administrators read, and that no request changes. */
export function auditResources(serving: Serving): ServedCollection {
  return serveCollection(serving, auditCollection, {
    announced: false,
    listPermission: administratorsOnly,
    operations,
    documentation: {
      names: {
        singular: 'AuditEntry',
        plural: 'AuditEntries',
        one: 'an entry of the audit trail',
        many: 'entries of the audit trail',
      },
      audience: 'operator',
      idPrefix: 'aud_',
    },
  });
}

export type AuditType =
  | 'account.registered'
  | 'account.changed'
  | 'account.disabled'
  | 'account.enabled'
  | 'account.roles_changed'
  | 'account.deleted'
  | 'account.invited'
  | 'login.succeeded'
  | 'login.failed'
  | 'login.limited'
  | 'session.ended'
  | 'session.reused'
  | 'password.changed'
  | 'password.reset_requested'
  | 'password.reset'
  | 'email.verified'
  | 'second_factor.added'
  | 'second_factor.changed'
  | 'second_factor.removed'
  | 'second_factor.reset'
  | 'recovery_codes.created'
  | 'identity.linked'
  | 'key.created'
  | 'key.changed'
  | 'key.rotated'
  | 'key.revoked'
  | 'portal_link.created'
  | 'portal_link.revoked'
  | 'portal_session.opened'
  | 'signing_key.rotated'
  | 'events.expunged'
  | 'backup.created'
  | 'backup.deleted';

export type AuditFact = {
  readonly type: AuditType;
  /** Id of the principal that acted; null if there is none: a caller that proved nothing, or Comity itself. */
  readonly actor: string | null;
  /** Absent: an account, of itself; without an id, an anonymous caller, or Comity itself where there is no address. */
  readonly kind?: ActorKind;
  /** The API key that was used. */
  readonly keyId?: string;
  /** Id of the request, as in the log; absent: none led to it. */
  readonly requestId?: string;
  readonly subject: string | null;
  /** The address that rate limits count; null without a request. */
  readonly address: string | null;
  readonly detail?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
};

/** Where a request came from. */
export type From = {
  /** The address that rate limits count. */
  readonly address: string;
  /** Absent: the request has no id. */
  readonly requestId?: string | undefined;
};

/** The members of a fact that tell where the request came from. */
export function originOf({ address, requestId }: From): Pick<AuditFact, 'address' | 'requestId'> {
  return { address, ...(requestId === undefined ? {} : { requestId }) };
}

export type Audit = {
  /** Returns the row of a fact, to commit together with the change that it records. */
  entry(fact: AuditFact): Change;
  /** Queues a fact without a change, such as a failed login, for the background writer; bounded, and never throws. */
  note(fact: AuditFact): void;
  close(): Promise<void>;
};

/** The audit entry of an expunction. @param of whose events they are: the resource's or the owner's */
export type AuditExpunction = (ask: Ask, subject: string, of: 'object' | 'owner') => Change;

export function fromOf(request: Request, addressOf: (request: Request) => string): From {
  const { id } = request;
  return { address: addressOf(request), ...(id === '' ? {} : { requestId: id }) };
}

export function factOfAsk(
  ask: Ask,
  addressOf: CallerAddress,
  what: Pick<AuditFact, 'type' | 'subject' | 'detail'>,
): AuditFact {
  const { kind, id, keyId } = actorOfAsk(ask);
  const { request } = ask;
  return {
    ...{ actor: id, kind },
    ...(keyId === undefined ? {} : { keyId }),
    ...originOf(fromOf(request, addressOf)),
    ...what,
  };
}
