/**
 * Writes down what came of an attempt: one unit of the delivery, by its revision, and the row of the attempt. The state machine is in
 * conclude.ts; what follows for the endpoint is told to its health when the unit is durable.
 *
 * A unit that comes too late is concluded again from what stands. Where storage failed, whoever called settles again with the same
 * attempt: a unit that had been made although its answer was lost is recognised by the row of its attempt, and not made twice.
 * Nothing here sends anything.
 */
import type { WebhookSchedules } from '../../config/webhook-schedules.ts';
import { type Delivery, deliveryDocument } from '../../model/delivery.ts';
import type { Observe } from '../../observe/observation.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, Row, Store, Turn } from '../../store/store.ts';
import { type AttemptFacts, attemptChange, type Tried } from './attempt-row.ts';
import type { Attempted, Claim, Settle } from './claim.ts';
import { deliveriesCollection } from './collections.ts';
import { type Conclusion, conclude, expungedError, type Policy } from './conclude.ts';
import type { HealthOfEndpoints } from './health/health.ts';
import { findOwnAttempt } from './settle/own-attempt.ts';

export type SettleOptions = {
  /** With or without fan-out: nothing here makes an event. */
  readonly store: Pick<Store, 'commit' | 'read' | 'lines'>;
  readonly schedules: WebhookSchedules;
  readonly health: Pick<HealthOfEndpoints, 'note' | 'disable'>;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
  readonly observe: Observe;
  readonly settings: {
    readonly webhookRetryAfterSecondsMax: number;
    readonly webhookSnippetCharactersMax: number;
  };
};

const deliveriesTable = deliveriesCollection.name;

export function createSettle(options: SettleOptions): Settle {
  const { schedules, random, health, settings } = options;
  return async (claim, attempted) => {
    const policy: Policy = {
      endpoint: claim.endpoint.endpoint,
      trigger: claim.trigger,
      schedules,
      random,
      retryAfterSecondsMax: settings.webhookRetryAfterSecondsMax,
    };
    const first = conclude(claim.delivery, attempted, policy);
    const { verdict } = first;
    const delivery = await write(options, claim, attempted, policy, first);
    if (verdict.gone) await health.disable(claim.endpoint, 'gone', attempted.endedAt);
    health.note(claim.endpoint, verdict, attempted.endedAt);
    if (first.isLogged) observeAttempt(options.observe, claim, attempted);
    return { verdict, delivery };
  };
}

/** @returns what the delivery became, undefined where it was removed meanwhile */
async function write(
  options: SettleOptions,
  claim: Claim,
  attempted: Attempted,
  policy: Policy,
  first: Conclusion,
): Promise<Delivery | undefined> {
  const turn = options.store.lines.turn();
  try {
    return await writeInTurn(options, claim, attempted, { policy, first, turn });
  } finally {
    turn.release();
  }
}

/** What is concluded, by which rules, and the turn that it waits for once another writer was faster. */
type Writing = { readonly policy: Policy; readonly first: Conclusion; readonly turn: Turn };

async function writeInTurn(
  options: SettleOptions,
  claim: Claim,
  attempted: Attempted,
  { policy, first, turn }: Writing,
): Promise<Delivery | undefined> {
  const { store } = options;
  const begun = claim.delivery;
  let conclusion = first;
  let standing: Delivery = begun;
  let { rev, owner } = claim;
  for (;;) {
    if (conclusion.delivery === standing) return standing;
    const change = deliveryChange(conclusion.delivery, rev, owner, attempted.endedAt);
    const facts = factsOf(options, claim, attempted, standing, conclusion);
    const changes = facts === undefined ? [change] : [change, attemptChange(begun.id, owner, facts)];
    const commit = await store.commit({ changes, events: [] });
    if (commit.outcome === 'committed') return conclusion.delivery;
    if (commit.outcome !== 'superseded') throw new Error(`a settlement ended as ${commit.outcome}`);
    await turn.take({ table: deliveriesTable, id: begun.id });
    if (commit.change > 0) {
      // The log holds an attempt of this number that the delivery does not count, as only a mended store could: take the next.
      standing = { ...standing, attemptCount: standing.attemptCount + 1 };
    } else {
      const row: Row | undefined = commit.current;
      if (row === undefined) return undefined;
      ({ rev, owner } = row);
      standing = JSON.parse(row.doc) as Delivery;
      if (facts !== undefined && (await findOwnAttempt(store, begun, standing, facts))) return standing;
    }
    conclusion = conclude(standing, attempted, policy, begun);
  }
}

function deliveryChange(delivery: Delivery, rev: number, owner: string | null, at: number): Change {
  return {
    table: deliveriesTable,
    id: delivery.id,
    expect: { rev },
    next: keptRow(deliveryDocument(delivery), owner, Date.parse(delivery.createdAt), at),
  };
}

/** Undefined where there is nothing to log. Of a delivery that was expunged the log keeps nothing that the receiver said. */
function factsOf(
  { settings }: SettleOptions,
  { trigger }: Claim,
  attempted: Attempted,
  standing: Delivery,
  { isLogged, delivery }: Conclusion,
): AttemptFacts | undefined {
  if (!isLogged || !isTried(attempted)) return undefined;
  const snippetCharacters = standing.lastError === expungedError ? 0 : settings.webhookSnippetCharactersMax;
  return { number: delivery.attemptCount, trigger, attempted, snippetCharacters };
}

function isTried(attempted: Attempted): attempted is Tried {
  return attempted.outcome.kind !== 'expunged' && attempted.outcome.kind !== 'forbidden';
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
