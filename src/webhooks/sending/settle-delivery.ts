/**
 * Settles an attempt at a delivery (work/settlement.ts): the delivery, by its revision, and the row of the attempt.
 * conclude-delivery.ts has the state machine. The endpoint's health is updated when the unit is durable.
 */
import type { WebhookSchedules } from '../../config/webhook-schedules.ts';
import type { ExchangeTiming } from '../../egress/exchange.ts';
import { type Delivery, deliveryDocument, type Trigger } from '../../model/delivery.ts';
import { formatTimestamp } from '../../model/timestamp.ts';
import type { Observe } from '../../observe/observation.ts';
import type { Services } from '../../store/capabilities.ts';
import { type Change, keptRow } from '../../store/store.ts';
import {
  attemptRowChange,
  createTogether,
  fittingText,
  isAttemptLogged,
  type Settlement,
  settleByRevision,
  type WorkRow,
} from '../../work/settlement.ts';
import {
  type Attempted,
  type Claim,
  type Conclusion,
  conclude,
  expungedError,
  isUnsent,
  type Policy,
  type Settle,
  type Unsent,
} from './conclude-delivery.ts';
import type { HealthOfEndpoints } from './endpoint-health.ts';
import { attemptsTable, deliveriesCollection } from './sending-tables.ts';

/** The store may be with or without fan-out: nothing here makes an event. */
type Settling = Services & {
  readonly schedules: WebhookSchedules;
  readonly health: Pick<HealthOfEndpoints, 'note' | 'disable'>;
  readonly uniform: () => number;
};

const deliveriesTable = deliveriesCollection.name;

/** @param uniform returns numbers from 0 (inclusive) to 1 (exclusive) */
export function createSettle(
  services: Services,
  schedules: WebhookSchedules,
  health: Settling['health'],
  uniform: () => number,
): Settle {
  const settling: Settling = { ...services, schedules, health, uniform };
  const { store } = services;
  const commitTogether = createTogether(store);

  return {
    async alone(claim, attempted) {
      const { delivery: work, rev, owner, endpoint } = claim;
      const settled = await settleByRevision(store, settlementOf(settling, claim, attempted), {
        ...{ work, rev, owner },
      });
      if (settled.kind === 'refused')
        throw new Error('the settlement of a delivery must not be refused: it has no other changes');
      const { verdict } = settled.conclusion;
      if (verdict.gone) await health.disable(endpoint, 'gone', attempted.endedAt);
      note(settling, claim, attempted, settled.conclusion);
      if (settled.kind === 'removed') return { verdict, delivery: undefined };
      return { verdict, delivery: settled.kind === 'logged' ? settled.work : settled.conclusion.delivery };
    },
    together(claim, attempted, done) {
      const { delivery: work, rev, owner } = claim;
      let concluded: Concluded;
      let changes: readonly Change[] | undefined;
      try {
        concluded = concludeFrom(settling, claim, attempted, work);
        const own = changesOf(claim, attempted, concluded, { work, rev, owner });
        changes = own && [...own, ...leavingOf(claim, concluded)];
      } catch {
        // Settling alone fails in the same way, and reports it.
        done(undefined);
        return;
      }
      const { verdict, delivery } = concluded;
      if (changes === undefined || verdict.gone) {
        done(undefined);
        return;
      }
      commitTogether(changes, (isCommitted) => {
        if (isCommitted) note(settling, claim, attempted, concluded);
        done(isCommitted ? { verdict, delivery } : undefined);
      });
    },
  };
}

/** Passes the outcome of a settled attempt on. */
function note(
  { health, observe }: Settling,
  claim: Claim,
  attempted: Attempted,
  { verdict, isLogged }: Concluded,
): void {
  health.note(claim.endpoint, verdict, attempted.endedAt);
  if (isLogged) observeAttempt(observe, claim, attempted);
}

/** `facts`: the log entry of the attempt; undefined: none. */
type Concluded = Conclusion & { readonly facts: AttemptFacts | undefined };

/** @param delivery as it is in the store */
function concludeFrom(settling: Settling, claim: Claim, attempted: Attempted, delivery: Delivery): Concluded {
  const { schedules, uniform, settings } = settling;
  const policy: Policy = {
    endpoint: claim.endpoint.endpoint,
    trigger: claim.trigger,
    schedules,
    random: uniform,
    retryAfterSecondsMax: settings.webhookRetryAfterSecondsMax,
  };
  const conclusion = conclude(delivery, attempted, policy, claim.delivery);
  return { ...conclusion, facts: factsOf(settling, claim, attempted, delivery, conclusion) };
}

/** Undefined if the attempt changes nothing. */
function changesOf(
  claim: Claim,
  attempted: Attempted,
  { delivery, facts }: Concluded,
  { work, rev, owner }: WorkRow<Delivery>,
): readonly Change[] | undefined {
  if (delivery === work) return undefined;
  const change = deliveryChange(delivery, rev, owner, attempted.endedAt);
  return facts === undefined ? [change] : [change, attemptChange(claim.delivery.id, owner, facts)];
}

/** A delivery without a further attempt leaves its line. */
function leavingOf({ leave }: Claim, { delivery }: Concluded): readonly Change[] {
  return leave === undefined || delivery.dueAt !== null ? [] : [leave];
}

function settlementOf(
  settling: Settling,
  claim: Claim,
  attempted: Attempted,
): Settlement<Delivery, Concluded> {
  const { store } = settling;
  const begun = claim.delivery;
  let { leave } = claim;
  return {
    table: deliveriesTable,
    id: begun.id,
    conclude: (delivery) => concludeFrom(settling, claim, attempted, delivery),
    unitOf(concluded, current) {
      const own = changesOf(claim, attempted, concluded, current);
      return own && { own, others: leavingOf({ ...claim, leave }, concluded) };
    },
    refused() {
      // Another process took it out of its line.
      leave = undefined;
      return true;
    },
    withNextNumber: (delivery) => ({ ...delivery, attemptCount: delivery.attemptCount + 1 }),
    async isLogged(delivery, { facts }) {
      if (facts === undefined) return false;
      const [countedBefore, counted] = [begun.attemptCount, delivery.attemptCount];
      const range = { table: attemptsTable, workId: begun.id, countedBefore, counted };
      // Two attempts of one delivery have different documents, because one begins after the other has ended.
      const isOwn = (doc: string, number: number) => doc === attemptDocument({ ...facts, number });
      return await isAttemptLogged(store, range, isOwn);
    },
  };
}

function deliveryChange(delivery: Delivery, rev: number, owner: string | null, at: number): Change {
  return {
    table: deliveriesTable,
    id: delivery.id,
    expect: { rev },
    next: keptRow(deliveryDocument(delivery), owner, Date.parse(delivery.createdAt), at),
  };
}

/** Undefined if there is nothing to log. For an expunged delivery the log keeps nothing from the receiver. */
function factsOf(
  { settings }: Settling,
  { trigger }: Claim,
  attempted: Attempted,
  current: Delivery,
  { isLogged, delivery }: Conclusion,
): AttemptFacts | undefined {
  if (!isLogged || !isTried(attempted)) return undefined;
  const snippetCharacters = current.lastError === expungedError ? 0 : settings.webhookSnippetCharactersMax;
  return { number: delivery.attemptCount, trigger, attempted, snippetCharacters };
}

function isTried(attempted: Attempted): attempted is Tried {
  return !isUnsent(attempted.outcome);
}

function observeAttempt(observe: Observe, claim: Claim, { outcome, startedAt, endedAt }: Attempted): void {
  const answered = outcome.kind === 'answered';
  const isDelivered = answered && outcome.status >= 200 && outcome.status <= 299;
  observe({
    kind: 'delivery-attempted',
    endpoint: claim.endpoint.endpoint.id,
    delivery: claim.delivery.id,
    outcome: isDelivered ? 'delivered' : 'failed',
    status: answered ? outcome.status : undefined,
    failure: outcome.kind === 'failed' ? outcome.failure : undefined,
    durationMs: endedAt - startedAt,
  });
}

export type Attempt = {
  /** From 1, per delivery. */
  readonly number: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly message: string | null;
  /** Whole milliseconds to the header section, or to the failure. */
  readonly latencyMs: number;
  readonly responseSnippet: string;
  readonly trigger: Trigger;
  /** Start of the attempt, ISO 8601. */
  readonly at: string;
  readonly timing: ExchangeTiming;
  readonly responseHeaders: readonly (readonly [name: string, value: string])[];
  readonly protocol: string | null;
  readonly reused: boolean | null;
  readonly cut: string | null;
};

const messageCharactersMax = 500;
/** Fields of a response that the log keeps, the first ones. */
const headerFieldsMax = 32;
/** Characters of a name or a value. */
const headerCharactersMax = 256;

/** An attempt with an exchange; without one there is nothing to log. */
type Tried = Attempted & {
  readonly outcome: Exclude<Attempted['outcome'], Unsent>;
};

export type AttemptFacts = {
  readonly number: number;
  readonly trigger: Trigger;
  readonly attempted: Tried;
  /** Characters of the response content to keep; 0: none. */
  readonly snippetCharacters: number;
};

export function attemptChange(deliveryId: string, owner: string | null, facts: AttemptFacts): Change {
  const { startedAt, endedAt } = facts.attempted;
  const { number } = facts;
  const doc = attemptDocument(facts);
  return attemptRowChange({
    table: attemptsTable,
    workId: deliveryId,
    number,
    doc,
    owner,
    startedAt,
    endedAt,
  });
}

/** Concatenates the JSON for speed: it is made for every attempt. The same facts give the same text. */
export function attemptDocument({ number, trigger, attempted, snippetCharacters }: AttemptFacts): string {
  const { outcome, startedAt } = attempted;
  const { totalMs } = outcome.timing;
  const at = formatTimestamp(startedAt);
  const tail = `"trigger":"${trigger}","at":"${at}","timing":${timingText(outcome.timing)}`;
  const latencyMs = Math.round(totalMs);
  if (outcome.kind === 'failed') {
    const message = JSON.stringify(fittingText(outcome.message, messageCharactersMax));
    return (
      `{"number":${number},"statusCode":null,"error":"${outcome.failure}","message":${message},"latencyMs":${latencyMs},` +
      `"responseSnippet":"",${tail},"responseHeaders":[],"protocol":null,"reused":null,"cut":null}`
    );
  }
  const snippet = JSON.stringify(fittingText(outcome.snippet, snippetCharacters));
  const cut = outcome.cut === null ? 'null' : `"${outcome.cut}"`;
  return (
    `{"number":${number},"statusCode":${outcome.status},"error":null,"message":null,"latencyMs":${latencyMs},` +
    `"responseSnippet":${snippet},${tail},"responseHeaders":${headersText(outcome.fields)},` +
    `"protocol":"${outcome.protocol}","reused":${outcome.reused},"cut":${cut}}`
  );
}

function headersText(fields: readonly (readonly [name: string, value: string])[]): string {
  return JSON.stringify(
    fields
      .slice(0, headerFieldsMax)
      .map(([name, value]) => [
        fittingText(name, headerCharactersMax),
        fittingText(value, headerCharactersMax),
      ]),
  );
}

function timingText({ dnsMs, connectMs, tlsMs, firstByteMs, totalMs }: ExchangeTiming): string {
  return (
    `{"dnsMs":${rounded(dnsMs)},"connectMs":${rounded(connectMs)},"tlsMs":${rounded(tlsMs)},` +
    `"firstByteMs":${rounded(firstByteMs)},"totalMs":${rounded(totalMs)}}`
  );
}

/** To hundredths, the useful precision of network times. */
function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 100) / 100;
}
