/**
 * Waiting where a server limits requests (429, RFC 6585 §4): as long as it asks for, within bounds for a request and for a run. A request that
 * is still refused ends the run, because a 429 says nothing of the rule that a clause judges.
 */
import { fieldOf } from './answer.ts';
import type { Outcome } from './connection.ts';

/** How long a run may still wait. */
export type Patience = { leftMs: number };

/** Of one run. */
export const patienceMsMax = 300_000;
/** Of one request. */
export const waitsMax = 3;
const waitMsMin = 100;
const waitMsDefault = 1000;

/** The server still refuses a request by its limit. */
export class Limited extends Error {}

/** The error that ends a run; that of a limit names what the run could not remove. */
export function namingLeft(error: unknown, left: readonly string[]): unknown {
  if (!(error instanceof Limited) || left.length === 0) return error;
  return new Limited(`${error.message}; the run leaves ${left.join(', ')}`);
}

/**
 * Sends, and sends again after the time that a 429 asks for.
 * @param asked the request, such as `GET /notes`, for the message
 * @throws Limited
 */
export async function withPatience(
  patience: Patience,
  asked: string,
  send: () => Promise<Outcome>,
): Promise<Outcome> {
  for (let waits = 0; ; waits += 1) {
    const outcome = await send();
    if ('none' in outcome || outcome.status !== 429) return outcome;
    const waitMs = waitMsOf(fieldOf(outcome, 'Retry-After'));
    if (waits === waitsMax)
      throw new Limited(
        `${asked} is answered 429, ${waits} times after the wait that it asks for: ${advice}`,
      );
    if (waitMs > patience.leftMs)
      throw new Limited(
        `${asked} is answered 429 and asks for ${Math.ceil(waitMs / 1000)} s, of ${Math.floor(patience.leftMs / 1000)} s that the run may still wait: ${advice}`,
      );
    patience.leftMs -= waitMs;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

const advice = 'raise the limit of the server for the run, or judge some clauses with --only';

/** Seconds or a date (RFC 9110 §10.2.3). */
function waitMsOf(value: string | undefined): number {
  if (value === undefined) return waitMsDefault;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? waitMsDefault : Math.max(ms, waitMsMin);
}
