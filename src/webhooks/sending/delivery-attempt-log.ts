/**
 * The log entry of an attempt at a delivery (§6.8; work/attempt-log.ts), the document that `GET
 * {base}/deliveries/{id}/attempts` serves. `error` is the kind of a failure without a response, explained in `message`;
 * any response has none. All text from the receiver is truncated and made valid for both stores.
 */
import type { ExchangeTiming } from '../../egress/exchange.ts';
import type { Trigger } from '../../model/delivery.ts';
import { formatTimestamp } from '../../model/timestamp.ts';
import type { Change } from '../../store/store.ts';
import { attemptRowChange, fittingText } from '../../work/attempt-log.ts';
import type { Attempted, Unsent } from './delivery-claim.ts';
import { attemptsTable } from './sending-tables.ts';

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
export type Tried = Attempted & {
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
