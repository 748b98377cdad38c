/**
 * What every floor of webhooks sends by: undici, 64 kept connections, a header field with an HMAC of time and body (the scheme `timestamped`,
 * or the symmetric half of `standard`), the answer read to its end. No guard of addresses, no timeouts of its own, no log.
 */
import { createHmac, createSecretKey } from 'node:crypto';
import { type Dispatcher, Pool } from 'undici';
import { secret, secretKey } from '../../webhooks/sent-events.ts';

export type Scheme = 'timestamped' | 'standard';

export type SignedPosts = {
  /** Calls back with the status; a failure ends the program. */
  post(id: string, body: Buffer, answered: (status: number) => void): void;
  close(): Promise<void>;
};

const connections = 64;
const timestampedKey = createSecretKey(Buffer.from(secret));
const standardKey = createSecretKey(secretKey);

export function signedPosts(url: string, scheme: Scheme): SignedPosts {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  return {
    post(id, body, answered) {
      const headers = scheme === 'standard' ? standardFields(id, body) : timestampedFields(body);
      pool.dispatch(
        { path: pathname, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 },
        new Answer(answered),
      );
    },
    close: () => pool.close(),
  };
}

class Answer implements Dispatcher.DispatchHandler {
  readonly #answered: (status: number) => void;
  #status = 0;

  constructor(answered: (status: number) => void) {
    this.#answered = answered;
  }

  onRequestStart(): void {
    // Nothing gives up a request.
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(): void {
    // 204 has none.
  }

  onResponseEnd(): void {
    this.#answered(this.#status);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    throw error;
  }
}

function timestampedFields(body: Buffer): string[] {
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', timestampedKey).update(`${timestamp}.`).update(body).digest('hex');
  return [...first, 'Service-Signature', `t=${timestamp},v1=${signature}`];
}

function standardFields(id: string, body: Buffer): string[] {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', standardKey)
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64');
  return [...first, 'webhook-id', id, 'webhook-timestamp', timestamp, 'webhook-signature', `v1,${signature}`];
}

const first = ['Content-Type', 'application/json', 'User-Agent', 'Comity/0.1.0'];
