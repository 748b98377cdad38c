/** The rows of a message that was accepted (§4.14.4), as one unit. */
import { hash } from 'node:crypto';
import type { DeclaredSender } from '../../../config/senders.ts';
import { type Received, receivedDocument } from '../../../model/received.ts';
import { keptRow } from '../../../store/kept-row.ts';
import type { Expectation, Unit } from '../../../store/store.ts';
import type { Message } from '../../receive/message.ts';
import { contentFieldOf, digestKey, keptFields, type MessageFacts } from '../../receive/message-facts.ts';
import { receivedCollection } from '../collections.ts';
import { contentId, type ReceivedContent, receivedContentsTable } from '../tables.ts';

/** A message whose sender signed it, and what it says of itself. */
export type Verified = { readonly message: Message; readonly facts: MessageFacts };

/** In one turn of the event loop: 3 ms. A multiple of three, so that no slice is padded but the last. */
const sliceOctets = 3 * 1024 * 1024;

const absent: Expectation = { absent: true };

/** Long content is written in several turns of the event loop. @param newId as of an id source @param at now: milliseconds since the epoch, and ISO 8601 */
export async function unitOf(
  { name, rule, handOn }: DeclaredSender,
  { message, facts }: Verified,
  newId: string,
  { ms, text: at }: { readonly ms: number; readonly text: string },
): Promise<Unit> {
  const { body } = message;
  const id = `rec_${newId}`;
  const dedupeKey = keyOf(facts, body);
  const contentType = contentFieldOf(message, 'content-type');
  const received: Received = {
    id,
    sender: name,
    dedupeKey,
    type: facts.type,
    receivedAt: at,
    status: 'pending',
    attempts: 0,
    scheduledAttempts: 0,
    dueAt: handOn.kind === 'inbox' ? null : at,
    lastError: null,
    contentType,
    contentLength: body.length,
    createdAt: at,
    updatedAt: at,
  };
  const content = contentDocument({
    id,
    contentType,
    contentEncoding: contentFieldOf(message, 'content-encoding'),
    headers: keptFields(rule, message),
    body: await base64Of(body),
  });
  return {
    changes: [
      {
        table: receivedContentsTable,
        id: contentId(name, dedupeKey),
        expect: absent,
        next: keptRow(content, null, ms, ms),
      },
      {
        table: receivedCollection.name,
        id,
        expect: absent,
        next: keptRow(receivedDocument(received), null, ms, ms),
      },
    ],
    events: [],
  };
}

function keyOf({ key, oversizedKey }: MessageFacts, body: Uint8Array): string {
  return key ?? digestKey(hash('sha256', oversizedKey ?? body, 'base64url'));
}

/** Written by hand: base64 has nothing to escape, and may be 30 million characters. */
function contentDocument({ id, contentType, contentEncoding, headers, body }: ReceivedContent): string {
  return (
    `{"id":"${id}","contentType":${JSON.stringify(contentType)},"contentEncoding":${JSON.stringify(contentEncoding)},` +
    `"headers":${JSON.stringify(headers)},"body":"${body}"}`
  );
}

async function base64Of(octets: Uint8Array): Promise<string> {
  const whole = Buffer.from(octets.buffer, octets.byteOffset, octets.length);
  if (whole.length <= sliceOctets) return whole.toString('base64');
  let text = '';
  for (let at = 0; at < whole.length; at += sliceOctets) {
    text += whole.toString('base64', at, at + sliceOctets);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return text;
}
