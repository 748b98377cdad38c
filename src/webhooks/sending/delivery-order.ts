/**
 * Deliveries in order (`orderBy` of an endpoint, §6.19): those of one key stand in a line of the engine of due work (work/work-lines.ts), in
 * the order of the commits of their events. A key is the value at a pointer into the resource. Its digest is in the delivery, so that a line
 * does not depend on what the endpoint becomes. A delivery leaves its line when it has no further attempt.
 */
import { hash } from 'node:crypto';
import { valueAt } from '../../http/syntax/json-members.ts';
import { parseJsonPointer } from '../../http/syntax/json-pointer.ts';
import { type Delivery, deliveryDocument, triggerOf } from '../../model/delivery.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Change, Row, Store } from '../../store/store.ts';
import type { Timers } from '../../work/timers.ts';
import type { WorkEngine } from '../../work/work-engine.ts';
import { heldBackError, type LinedWork, lineChange, WorkLines } from '../../work/work-lines.ts';
import type { Claim } from './conclude-delivery.ts';
import type { DueDelivery, EndpointQueue } from './endpoint-queue.ts';
import { deliveriesCollection, deliveryLinesTable } from './sending-tables.ts';

/** 128 bits. */
const digestCharacters = 22;

/** The key of the event at the endpoint; undefined: it has no value there, and needs no order. @param doc of the event */
export function orderKeyOf({ orderBy }: Pick<Endpoint, 'orderBy'>, doc: string): string | undefined {
  const path = orderBy === undefined ? undefined : parseJsonPointer(orderBy);
  if (path === undefined) return undefined;
  const value = valueAt(doc, ['data', 'object', ...path]);
  if (value === undefined || value === null) return undefined;
  return hash('sha256', JSON.stringify(value), 'base64url').slice(0, digestCharacters);
}

function lineOf({ endpointId, orderKey }: Delivery): string {
  return `${endpointId}/${orderKey}`;
}

/** @param rev of the unit of the event, if the delivery is created in a later one */
export function placeChange(delivery: Delivery, line: string, rev: number | undefined): Change {
  return lineChange(deliveryLinesTable, line, nameInLine(delivery), Date.parse(delivery.createdAt), rev);
}

const madeId = /^evt_([0-9a-z]{26})$/;

/** Deliveries of one unit have the order of their events, whose ids grow with it; an event with an id of another kind is alone in its unit. */
function nameInLine({ id, eventId }: Pick<Delivery, 'id' | 'eventId'>): string {
  return `${madeId.exec(eventId)?.[1] ?? id.slice(id.indexOf('_') + 1)}/${id}`;
}

/** @param isAwaited true if a unit up to the revision owes the endpoint deliveries */
function linedDeliveries(isAwaited: (endpointId: string, rev: number) => Promise<boolean>): LinedWork {
  const parse = (doc: string) => JSON.parse(doc) as Delivery;
  return {
    linesTable: deliveryLinesTable,
    table: deliveriesCollection.name,
    nameOf: ({ doc }) => nameInLine(parse(doc)),
    dueAt(doc) {
      const { dueAt } = parse(doc);
      return dueAt === null ? undefined : Date.parse(dueAt);
    },
    isHeldBack: (doc) => parse(doc).lastError === heldBackError,
    // By schedule: a delivery that was requested by hand waits like the others of its key.
    dueDocument: (doc, dueAt, updatedAt) =>
      deliveryDocument({ ...parse(doc), dueAt, nextAttemptAt: dueAt, lastError: heldBackError, updatedAt }),
    isAwaited: (line, rev) => isAwaited(line.slice(0, line.indexOf('/')), rev),
  };
}

/** Returns true if the delivery is still due: it may have been sent or expunged. */
export function isDue({ doc }: Row, now: number): boolean {
  const { dueAt } = JSON.parse(doc) as Delivery;
  return dueAt !== null && Date.parse(dueAt) <= now;
}

type LineServices = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'plan' | 'read' | 'commit'>;
};
type Attempt = { readonly queue: EndpointQueue; readonly claim: Claim; readonly probe: boolean };

/** Lets deliveries of this process into their lines. No function here rejects. */
export class DeliveryLines {
  readonly #services: LineServices;
  readonly #engine: Pick<WorkEngine<DueDelivery, EndpointQueue>, 'isRunning' | 'failAttempt'>;
  readonly #lines: WorkLines<DueDelivery, EndpointQueue>;

  constructor(
    services: LineServices,
    timers: Timers,
    engine: WorkEngine<DueDelivery, EndpointQueue>,
    isAwaited: (endpointId: string, rev: number) => Promise<boolean>,
  ) {
    this.#services = services;
    this.#engine = engine;
    this.#lines = new WorkLines(services, timers, linedDeliveries(isAwaited), engine.ready);
  }

  /** @returns what is to be sent, as the store has it now; undefined: it waits in its line, or is not due any more */
  async claim({ queue, claim, probe }: Attempt, due: DueDelivery): Promise<Claim | undefined> {
    const { store, clock } = this.#services;
    const lines = this.#lines.of(queue);
    const calledFrom = lines.calledFrom(due.id);
    try {
      // Since it was read, it may have been requested, made due by the one before it, or sent.
      const row = await store.read(deliveriesCollection.name, due.id);
      if (row !== undefined && this.#engine.isRunning && isDue(row, clock())) {
        const entered = await this.#lines.enter(queue, due, row, lineOf(claim.delivery));
        const delivery = JSON.parse(row.doc) as Delivery;
        if (entered) return { ...claim, ...entered, delivery, rev: row.rev, trigger: triggerOf(delivery) };
      }
      queue.breaker.ignored(probe);
    } catch (error) {
      this.#engine.failAttempt(queue, probe, error);
    }
    if (calledFrom !== undefined && !lines.holds(due.id)) queue.callNextOf(calledFrom);
    return undefined;
  }

  /** @param isOver the delivery has no further attempt */
  async passOn({ queue, claim: { delivery } }: Attempt, isOver: boolean): Promise<void> {
    try {
      await this.#lines.passOn(queue, delivery.id, lineOf(delivery), isOver);
    } catch (error) {
      const what = 'calling the next delivery of a line';
      this.#services.observe({ kind: 'sending-failed', what, error });
    }
  }
}
