/** Signed messages, sent as a sender does, with the libraries that senders and receivers use. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import type { Answer } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';

export const bankSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const ledgerConfig = new URL('./fixtures/ledger.config.ts', import.meta.url).pathname;
export const ledgerEnvironment = {
  BANK_WEBHOOK_SECRET: bankSecret,
  PRESS_WEBHOOK_SECRET: 'mysecret-of-the-press',
};

export type Message = { readonly id: string; readonly body: string };

export function bankMessage(data: Readonly<Record<string, unknown>>, id = `msg_${randomUUID()}`): Message {
  return { id, body: JSON.stringify({ type: 'money.moved', timestamp: new Date().toISOString(), data }) };
}

export function signedFields({ id, body }: Message, at = new Date()): Readonly<Record<string, string>> {
  return {
    'Content-Type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(bankSecret).sign(id, at, body),
  };
}

export function sendToBank(program: Pick<RunningServer, 'send'>, message: Message): Promise<Answer> {
  return program.send('POST', '/api/v1/webhooks/bank', {
    anonymous: true,
    headers: signedFields(message),
    body: message.body,
  });
}

/**
 * Resolves when none of the messages is pending: many write one sum, so they are handled one after the other. It takes a while, but never
 * as long as the patience without one being done.
 */
export async function quiet(
  program: Pick<RunningServer, 'send'>,
  query: string,
  patienceMs: number,
): Promise<void> {
  let left = Number.POSITIVE_INFINITY;
  let endAt = 0;
  while (left > 0) {
    const pending = await allOf(program, `received?${query}`);
    if (pending.length < left) endAt = Date.now() + patienceMs;
    left = pending.length;
    if (Date.now() > endAt) throw new Error(`${left} are still pending: ${JSON.stringify(pending[0])}`);
    await delay(left === 0 ? 0 : 100);
  }
}

type Item = Readonly<Record<string, unknown>>;

/** Every item of a list, page by page. */
export async function allOf(program: Pick<RunningServer, 'send'>, path: string): Promise<readonly Item[]> {
  const found: Item[] = [];
  let cursor: unknown = null;
  do {
    const from = cursor === null ? '' : `&cursor=${encodeURIComponent(String(cursor))}`;
    const separator = path.includes('?') ? '&' : '?';
    const { items, nextCursor } = (
      await program.send('GET', `/api/v1/${path}${separator}limit=1000${from}`)
    ).json() as { items: readonly Item[]; nextCursor: unknown };
    found.push(...items);
    cursor = nextCursor;
  } while (cursor !== null);
  return found;
}
