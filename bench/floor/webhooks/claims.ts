/**
 * Floor of durable sending: deliveries claimed in batches for a time, attempts settled in batches with their log, one transaction for both
 * at a time. What is claimed waits in memory until one of the attempts under way has ended. Whatever keeps the tables does
 * the two things; this is all that stands around it. No schedule, no fairness, no guard of addresses.
 */
import { nowMs } from '../../webhooks/answer-questions.ts';
import type { SendQuestion, Sent } from './bare.ts';
import { signedPosts } from './signed-posts.ts';

export type Claimed = { readonly id: string; readonly eventId: string; readonly doc: string };
export type Ended = {
  readonly id: string;
  readonly status: number;
  readonly startedMs: number;
  readonly endedMs: number;
};

export type ClaimTables = {
  /** Adds so many deliveries that are due. */
  fill(count: number): Promise<void>;
  /** Settles and claims in one transaction. */
  turn(ended: readonly Ended[], wanted: number): Promise<readonly Claimed[]>;
};

/** Claimed and not begun yet, at most. */
const claimedMax = 512;

export async function sendClaimed(tables: ClaimTables, question: SendQuestion): Promise<Sent> {
  const { url, scheme, count, underWay } = question;
  await tables.fill(count);
  const posts = signedPosts(url, scheme);
  let claimed: readonly Claimed[] = [];
  let at = 0;
  let sending = 0;
  let settled = 0;
  let ended: Ended[] = [];
  let turning = false;

  await new Promise<void>((resolve, reject) => {
    const begin = (): void => {
      while (sending < underWay && at < claimed.length) {
        const delivery = claimed[at];
        at += 1;
        if (delivery === undefined) continue;
        sending += 1;
        const startedMs = Date.now();
        posts.post(delivery.eventId, Buffer.from(delivery.doc), (status) => {
          sending -= 1;
          ended.push({ id: delivery.id, status, startedMs, endedMs: Date.now() });
          begin();
          soon();
        });
      }
    };
    const soon = (): void => {
      if (turning) return;
      turning = true;
      setImmediate(() => void turn().catch(reject));
    };
    const turn = async (): Promise<void> => {
      const batch = ended;
      ended = [];
      const more = await tables.turn(batch, Math.max(0, claimedMax - (claimed.length - at)));
      settled += batch.length;
      claimed = [...claimed.slice(at), ...more];
      at = 0;
      turning = false;
      if (settled >= count) {
        resolve();
        return;
      }
      begin();
      if (ended.length > 0) soon();
    };
    soon();
  });
  const endedMs = nowMs();
  await posts.close();
  return { endedMs };
}
