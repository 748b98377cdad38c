/**
 * A receiver of webhooks: deliveries that it must accept, and those that it must not (Standard Webhooks 1.0; §4.14 of the specification of
 * Comity has the same rules for the other schemes).
 */
import { type Answer, fieldOf } from '../answer.ts';
import { type Clause, cannotApply, deviates, type Finding, holds, holdsIf, warns } from '../clause.ts';
import { randomToken } from '../target.ts';
import type { Visit } from '../visit.ts';
import { kindOf, type Scheme, type Signed, signatureFields } from './signature.ts';

export type Receiver = { readonly scheme: Scheme; readonly secret: string };

const standard = 'Standard Webhooks 1.0';
/** Twice the five minutes that libraries tolerate. */
const skewSeconds = 600;
const bigBytes = 262_144;
const pieceMs = 300;

/** @param receiver the scheme and the secret that the receiver verifies by */
export function receiverClauses(receiver: Receiver): readonly Clause[] {
  return [...taken(receiver), ...forged(receiver), ...pairs(receiver), ...others(receiver)];
}

/** Deliveries that are what the sender sends. */
function taken(receiver: Receiver): readonly Clause[] {
  const rule = { group: 'receiver', section: standard, writes: true } as const;
  const accepts = (id: string, title: string, parts: Parts): Clause => ({
    ...{ id, title, ...rule, level: 'must' },
    judge: async (visit) => accepted(await deliver(visit, receiver, parts)),
  });
  return [
    accepts('receiver-valid', 'A valid delivery is answered 2xx', {}),
    accepts(
      'receiver-octets',
      'The signature is verified over the octets as they came, whatever their form',
      {
        content:
          '{ "type" : "note.created",\n\t"amount": 1.0,\r\n "data":{"name":"\\u00e9 é","id":12345678901234567890} }',
      },
    ),
    accepts(
      'receiver-unknown-type',
      'An event of a type that the receiver does not know is answered 2xx: a refusal has it sent again and again',
      { content: '{"type":"conduct.unknown","data":{}}' },
    ),
    {
      ...{ id: 'receiver-rotated', ...rule, level: 'must' },
      title:
        'A delivery with two signatures of which the second is valid is answered 2xx, as while a secret is changed',
      judge: async (visit) => {
        const kind = kindOf(receiver.scheme);
        if (kind === 'plain') return cannotApply('the scheme has one signature');
        const before = Buffer.alloc(32, 1).toString(kind === 'standard' ? 'base64' : 'hex');
        return accepted(await deliver(visit, receiver, { before: [before] }));
      },
    },
    {
      ...{ id: 'receiver-big', ...rule, level: 'should' },
      title: 'A delivery of 256 KiB is answered 2xx',
      judge: async (visit) => {
        const content = JSON.stringify({ type: 'note.created', data: { text: 'x'.repeat(bigBytes) } });
        return accepted(await deliver(visit, receiver, { content }));
      },
    },
    {
      ...{ id: 'receiver-slow', ...rule, level: 'must' },
      title: 'A delivery whose content comes in pieces is answered like one that comes at once',
      judge: async (visit) => slowly(visit, receiver),
    },
  ];
}

/** Changes after signing. */
const changed =
  (change: (name: string, value: string) => string): NonNullable<Parts['fields']> =>
  (fields) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(name, value)]));

const otherSecret = `whsec_${Buffer.from(`conduct ${'x'.repeat(24)}`).toString('base64')}`;

type Forgery = {
  readonly id: string;
  readonly title: string;
  readonly parts: Parts;
  readonly needsTime?: true;
  /** Schemes other than Standard Webhooks leave it open. */
  readonly isOpen?: true;
};

const forgeries: readonly Forgery[] = [
  {
    id: 'receiver-unsigned',
    title: 'A delivery without a signature is refused with 4xx',
    parts: { fields: () => ({}) },
  },
  {
    id: 'receiver-other-secret',
    title: 'A delivery that is signed with another secret is refused with 4xx',
    parts: { secret: otherSecret },
  },
  {
    id: 'receiver-tampered',
    title: 'A delivery whose content was changed is refused with 4xx',
    parts: { sent: (content) => content.replace('note.created', 'note.deleted') },
  },
  {
    id: 'receiver-signature-malformed',
    title: 'A signature that cannot be read is refused with 4xx',
    parts: { fields: changed((name, value) => (/signature/i.test(name) ? '=,=' : value)) },
  },
  {
    id: 'receiver-stale',
    title: 'A valid signature of ten minutes ago is refused with 4xx',
    parts: { offsetSeconds: -skewSeconds },
    needsTime: true,
  },
  {
    id: 'receiver-future',
    title: 'A valid signature of ten minutes from now is refused with 4xx',
    parts: { offsetSeconds: skewSeconds },
    needsTime: true,
    isOpen: true,
  },
  {
    id: 'receiver-time-tampered',
    title: 'A time that was changed after signing is refused with 4xx',
    parts: { fields: changed(changedTime) },
    needsTime: true,
  },
];

function forged(receiver: Receiver): readonly Clause[] {
  const kind = kindOf(receiver.scheme);
  return forgeries.map(({ id, title, parts, needsTime, isOpen }) => ({
    ...{ id, title, group: 'receiver', section: standard, writes: true, level: 'must' },
    judge: async (visit) => {
      if (needsTime && kind === 'plain') return cannotApply('the scheme signs no time');
      const answer = await deliver(visit, receiver, parts);
      if (isOpen && kind !== 'standard' && answer.status < 300)
        return warns(`it is answered ${answer.status}`);
      return refused(answer);
    },
  }));
}

/** Deliveries in pairs: repeated, and in another order. */
function pairs(receiver: Receiver): readonly Clause[] {
  const rule = { group: 'receiver', section: standard, writes: true, level: 'must' } as const;
  return [
    {
      ...{ id: 'receiver-repeated', ...rule },
      title: 'A delivery that comes twice is answered 2xx twice, never 409',
      judge: async (visit) => {
        const parts = { id: messageId(), content: sampleContent() };
        const first = await deliver(visit, receiver, parts);
        if (first.status >= 300) return deviates(`the first is answered ${first.status}`);
        const second = await deliver(visit, receiver, parts);
        return holdsIf(second.status < 300, `the second is answered ${second.status}`);
      },
    },
    {
      ...{ id: 'receiver-reordered', ...rule },
      title: 'A delivery that was signed before one that came first is answered 2xx',
      judge: async (visit) => {
        const [older, newer] = [messageId(), messageId()];
        const first = await deliver(visit, receiver, { id: newer });
        const second = await deliver(visit, receiver, { id: older, offsetSeconds: -60 });
        if (first.status >= 300) return deviates(`the first is answered ${first.status}`);
        return holdsIf(second.status < 300, `the older is answered ${second.status}`);
      },
    },
  ];
}

/** Contents and methods that are no delivery of JSON. */
function others(receiver: Receiver): readonly Clause[] {
  const rule = { group: 'receiver', section: standard, writes: true } as const;
  return [
    {
      ...{ id: 'receiver-form', ...rule, level: 'should' },
      title:
        'A form with a valid signature is answered 2xx or refused with words, and does not make the receiver fail',
      judge: async (visit) => {
        const content = `payload=${encodeURIComponent(sampleContent())}`;
        const { status } = await deliver(visit, receiver, {
          content,
          type: 'application/x-www-form-urlencoded',
        });
        if (status >= 500) return deviates(`it is answered ${status}`);
        return status < 300 ? holds : warns(`it is answered ${status}`);
      },
    },
    {
      ...{ id: 'receiver-malformed', ...rule, level: 'must' },
      title: 'Content that is no JSON, with a valid signature, does not make the receiver fail',
      judge: async (visit) => {
        const { status } = await deliver(visit, receiver, { content: '{"a":' });
        return holdsIf(status < 500, `it is answered ${status}`);
      },
    },
    {
      ...{ id: 'receiver-verifies-first', ...rule, level: 'should' },
      title: 'Content that is neither signed nor JSON is answered as not signed',
      judge: async (visit) => {
        const unsigned = await deliver(visit, receiver, { fields: () => ({}) });
        const both = await deliver(visit, receiver, { content: '{"a":', fields: () => ({}) });
        return holdsIf(
          both.status === unsigned.status,
          `it is answered ${both.status}, JSON without a signature ${unsigned.status}`,
        );
      },
    },
    {
      ...{ id: 'receiver-method', ...rule, level: 'should' },
      title: 'A GET of the receiver is not taken for a delivery',
      judge: async (visit) => {
        const answer = await visit.send({ method: 'GET', path: visit.target.collection });
        if (answer.status < 300) return warns(`it is answered ${answer.status}`);
        if (answer.status !== 405) return holdsIf(answer.status < 500, `it is answered ${answer.status}`);
        return holdsIf(fieldOf(answer, 'Allow') !== undefined, 'the 405 has no Allow');
      },
    },
  ];
}

type Parts = {
  readonly id?: string;
  readonly secret?: string;
  readonly content?: string;
  readonly type?: string;
  readonly offsetSeconds?: number;
  readonly before?: readonly string[];
  /** Changes the fields after signing. */
  readonly fields?: (fields: Readonly<Record<string, string>>) => Readonly<Record<string, string>>;
  /** Changes the content after signing. */
  readonly sent?: (content: string) => string;
};

function deliver(visit: Visit, receiver: Receiver, parts: Parts): Promise<Answer> {
  const { headers, content } = delivery(receiver, parts);
  return visit.send({ method: 'POST', path: visit.target.collection, headers, content });
}

function delivery({ scheme, secret }: Receiver, parts: Parts) {
  const { id = messageId(), content = sampleContent(), type = 'application/json', offsetSeconds = 0 } = parts;
  const signed: Signed = {
    ...{ scheme, secret: parts.secret ?? secret, id },
    ...{ seconds: Math.floor(Date.now() / 1000) + offsetSeconds, content: Buffer.from(content) },
  };
  const made = signatureFields(signed, parts.before);
  const fields = parts.fields?.(made) ?? made;
  return { headers: { 'Content-Type': type, ...fields }, content: parts.sent?.(content) ?? content };
}

async function slowly(visit: Visit, receiver: Receiver): Promise<Finding> {
  const octets = visit.octetsOf({ method: 'POST', path: visit.target.collection, ...delivery(receiver, {}) });
  const connection = await visit.open();
  const begin = octets.indexOf('\r\n\r\n') + 4;
  const pieces = [octets.slice(0, begin), octets.slice(begin, begin + 9), octets.slice(begin + 9)];
  for (const piece of pieces) {
    connection.write(Buffer.from(piece, 'latin1'));
    await new Promise((resolve) => setTimeout(resolve, pieceMs));
  }
  const outcome = await connection.answer('POST');
  visit.note(octets, outcome);
  return 'none' in outcome ? deviates(outcome.none) : accepted(outcome);
}

function changedTime(name: string, value: string): string {
  if (/timestamp$/i.test(name)) return String(Number(value) + 1);
  return value.replace(/t=(\d+)/, (_, seconds) => `t=${Number(seconds) + 1}`);
}

function accepted({ status }: Answer): Finding {
  return holdsIf(status >= 200 && status < 300, `it is answered ${status}`);
}

function refused({ status }: Answer): Finding {
  if (status < 400 || status >= 500) return deviates(`it is answered ${status}`);
  // A 410 would end the subscription of a sender; 404 looks like one.
  return [400, 401, 403].includes(status) ? holds : warns(`it is refused with ${status}`);
}

function messageId(): string {
  return `msg_${randomToken()}${randomToken()}`;
}

function sampleContent(): string {
  return JSON.stringify({
    type: 'note.created',
    timestamp: new Date().toISOString(),
    data: { id: randomToken() },
  });
}
