/**
 * The log of attempts (§6.8): one row for each, never changed. Its document is what `GET {base}/deliveries/{id}/attempts` serves.
 *
 * `error` is the kind of a failure without an answer, with a `message`; an answer of any status has none. Everything that the receiver
 * sent is cut, and made fit for both stores: PostgreSQL's JSON holds neither U+0000 nor half of a surrogate pair.
 */
import type { ExchangeTiming } from '../../egress/exchange.ts';
import type { Trigger } from '../../model/delivery.ts';
import type { Field } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, MaybePromise, Plan, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { Attempted } from './claim.ts';
import { attemptsTable } from './tables.ts';

/** As served. */
export type Attempt = {
  /** From 1, of one delivery. */
  readonly number: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly message: string | null;
  /** Whole milliseconds to the header section, or to the failure. */
  readonly latencyMs: number;
  readonly responseSnippet: string;
  readonly trigger: Trigger;
  /** When it began, ISO 8601. */
  readonly at: string;
  readonly timing: ExchangeTiming;
  readonly responseHeaders: readonly (readonly [name: string, value: string])[];
  readonly protocol: string | null;
  readonly reused: boolean | null;
  readonly cut: string | null;
};

const numberDigits = 6;
const messageCharactersMax = 500;
/** Fields of an answer that the log keeps, of those that came first. */
const headerFieldsMax = 32;
/** Of a name or a value. */
const headerCharactersMax = 256;

const idOfRow: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };

/** @param number from 1; ids are in the order of the numbers up to 999,999 */
export function attemptId(deliveryId: string, number: number): string {
  return `${deliveryId}/${String(number).padStart(numberDigits, '0')}`;
}

/** What is not sent to anybody has no attempt. */
export type Tried = Attempted & {
  readonly outcome: Exclude<Attempted['outcome'], { kind: 'expunged' } | { kind: 'forbidden' }>;
};

export type AttemptFacts = {
  readonly number: number;
  readonly trigger: Trigger;
  readonly attempted: Tried;
  /** Of the answer's beginning; 0 keeps nothing. */
  readonly snippetCharacters: number;
};

/** The row of an attempt that is logged for the first time. */
export function attemptChange(deliveryId: string, owner: string | null, facts: AttemptFacts): Change {
  const { startedAt, endedAt } = facts.attempted;
  return {
    table: attemptsTable,
    id: attemptId(deliveryId, facts.number),
    expect: { absent: true },
    next: keptRow(attemptDocument(facts), owner, startedAt, endedAt),
  };
}

/** Written by hand: it is made for every attempt. The same facts give the same text. */
export function attemptDocument({ number, trigger, attempted, snippetCharacters }: AttemptFacts): string {
  const { outcome, startedAt } = attempted;
  const { totalMs } = outcome.timing;
  const at = new Date(startedAt).toISOString();
  const tail = `"trigger":"${trigger}","at":"${at}","timing":${timingText(outcome.timing)}`;
  const latencyMs = Math.round(totalMs);
  if (outcome.kind === 'failed') {
    const message = JSON.stringify(whole(outcome.message, messageCharactersMax));
    return (
      `{"number":${number},"statusCode":null,"error":"${outcome.failure}","message":${message},"latencyMs":${latencyMs},` +
      `"responseSnippet":"",${tail},"responseHeaders":[],"protocol":null,"reused":null,"cut":null}`
    );
  }
  const snippet = JSON.stringify(whole(outcome.snippet, snippetCharacters));
  const cut = outcome.cut === null ? 'null' : `"${outcome.cut}"`;
  return (
    `{"number":${number},"statusCode":${outcome.status},"error":null,"message":null,"latencyMs":${latencyMs},` +
    `"responseSnippet":${snippet},${tail},"responseHeaders":${headersText(outcome.fields)},` +
    `"protocol":"${outcome.protocol}","reused":${outcome.reused},"cut":${cut}}`
  );
}

export type AttemptsPage = {
  /** Documents, oldest first. */
  readonly docs: readonly string[];
  readonly more: boolean;
};

type AttemptsAsked = {
  /** The page begins with the attempt after this one; 0: with the first. */
  readonly afterNumber: number;
  readonly limit: number;
  /** Octets of documents on the page; undefined: all up to `limit`. */
  readonly bytesMax?: number;
};

export function attemptsOf(
  store: Pick<Store, 'plan'>,
  deliveryId: string,
  asked: AttemptsAsked,
): MaybePromise<AttemptsPage> {
  const page = planOf(store, deliveryId, asked).page({ from: 'start' });
  return whenKnown(page, ({ docs, more }) => ({ docs, more }));
}

function planOf(
  store: Pick<Store, 'plan'>,
  deliveryId: string,
  { afterNumber, limit, bytesMax }: AttemptsAsked,
): Plan {
  return store.plan({
    table: attemptsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'gt', field: idOfRow, value: attemptId(deliveryId, afterNumber) },
        // The digit after the slash in order of code points is 0, so this ends what begins with the id and a slash.
        { op: 'lt', field: idOfRow, value: `${deliveryId}0` },
      ],
    },
    sort: byId,
    limit,
    ...(bytesMax === undefined ? {} : { bytesMax }),
  });
}

/** The beginning, without half of a pair at its end or anywhere, and without U+0000. */
function whole(text: string, charactersMax: number): string {
  const cut = text.length <= charactersMax ? text : text.slice(0, withoutHalf(text, charactersMax));
  const fitting = cut.isWellFormed() ? cut : cut.toWellFormed();
  return fitting.includes('\0') ? fitting.replaceAll('\0', '') : fitting;
}

/** Where to cut, so that a pair is kept whole or not at all. */
function withoutHalf(text: string, length: number): number {
  const last = text.charCodeAt(length - 1);
  return last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
}

function headersText(fields: readonly (readonly [name: string, value: string])[]): string {
  let text = '[';
  const count = Math.min(fields.length, headerFieldsMax);
  for (let at = 0; at < count; at += 1) {
    const [name, value] = fields[at] ?? ['', ''];
    const comma = at === 0 ? '' : ',';
    text += `${comma}[${JSON.stringify(whole(name, headerCharactersMax))},${JSON.stringify(whole(value, headerCharactersMax))}]`;
  }
  return `${text}]`;
}

function timingText({ dnsMs, connectMs, tlsMs, firstByteMs, totalMs }: ExchangeTiming): string {
  return (
    `{"dnsMs":${rounded(dnsMs)},"connectMs":${rounded(connectMs)},"tlsMs":${rounded(tlsMs)},` +
    `"firstByteMs":${rounded(firstByteMs)},"totalMs":${rounded(totalMs)}}`
  );
}

/** To hundredths, which is what a clock on a network is good for. */
function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 100) / 100;
}
