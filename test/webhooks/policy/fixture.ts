/** Attempts and deliveries as the tests of policies need them. */
import type { ExchangeFailure, ExchangeOutcome } from '../../../src/egress/exchange.ts';
import type { Delivery } from '../../../src/model/delivery.ts';
import type { Attempted } from '../../../src/webhooks/sending/conclude-delivery.ts';

/** When every delivery of these tests was made. */
export const madeAt = Date.parse('2026-03-01T12:00:00.000Z');

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function delivery(parts: Partial<Delivery> = {}): Delivery {
  return {
    id: 'dlv_1',
    eventId: 'evt_1',
    eventType: 'products.created',
    endpointId: 'ep_1',
    status: 'pending',
    attemptCount: 0,
    scheduledAttemptCount: 0,
    nextAttemptAt: isoTime(madeAt),
    dueAt: isoTime(madeAt),
    lastStatusCode: null,
    lastError: null,
    createdAt: isoTime(madeAt),
    updatedAt: isoTime(madeAt),
    ...parts,
  };
}

export const quickTiming = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 1.2345, totalMs: 1.5 };

export function answer(
  status: number,
  parts: Partial<Extract<ExchangeOutcome, { kind: 'answered' }>> = {},
): Extract<ExchangeOutcome, { kind: 'answered' }> {
  return {
    kind: 'answered',
    status,
    fields: [],
    snippet: '',
    cut: null,
    protocol: 'http/1.1',
    reused: true,
    address: null,
    timing: quickTiming,
    ...parts,
  };
}

export function failure(kind: ExchangeFailure): Extract<ExchangeOutcome, { kind: 'failed' }> {
  return { kind: 'failed', failure: kind, message: `it was ${kind}`, timing: quickTiming };
}

/** An attempt that ended at the time. @param tookMs from its beginning */
export function attempted<O extends Attempted['outcome']>(
  outcome: O,
  endedAt = madeAt + 1000,
  tookMs = 5,
): Attempted & { readonly outcome: O } {
  return { outcome, startedAt: endedAt - tookMs, endedAt };
}
