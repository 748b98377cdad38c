/**
 * Judges a message by `verify` of its sender (§4.14.1), on a thread of handlers: neither a loop nor an exit of it touches the program. It has
 * the time of a hook, because the sender waits. The copy for the thread fits in what a message to be stored is charged (memory/work-rules.ts),
 * which is made after it.
 */
import { randomUUID } from 'node:crypto';
import type { DeclaredSender } from '../../config/senders.ts';
import type { HandlerThreads } from '../../logic/threads/handler-threads.ts';
import type { Services } from '../../store/capabilities.ts';
import type { RuleVerdict } from '../signature/signature-rule.ts';
import { type SenderSecrets, validAt } from './sender-secrets.ts';

export type FunctionThreads = Pick<HandlerThreads, 'run'>;

/** The message as it came. */
type Unread = {
  readonly body: Uint8Array;
  readonly rawFields: readonly string[];
  readonly url: string;
};

/** @param nowMs milliseconds since the epoch. Rejects with Unjudged alone */
export type VerifyByFunction = (message: Unread, nowMs: number) => Promise<RuleVerdict>;

/** The function came to no verdict: its time passed, its thread ended, or the program stops. */
export class Unjudged extends Error {
  override readonly name = 'Unjudged';
  readonly reason = 'function-failed';
  readonly what = 'verify';
}

export function verifyingByFunction(
  { name }: Pick<DeclaredSender, 'name'>,
  secrets: Pick<SenderSecrets, 'of'>,
  threads: FunctionThreads | undefined,
  { observe, settings: { hookTimeoutMs: timeoutMs } }: Pick<Services, 'observe' | 'settings'>,
): VerifyByFunction {
  return async ({ body, rawFields, url }, nowMs) => {
    if (threads === undefined) throw new Unjudged('there are no threads for functions');
    const valid = validAt(secrets.of({ sender: name, use: 'receive' }), nowMs).map(({ secret }) => secret);
    // A view is sent with all of its buffer, which others may share.
    const given = {
      kind: 'verify',
      of: name,
      body: new Uint8Array(body),
      fields: rawFields,
      url,
      secrets: valid,
    } as const;
    const judged = await threads.run({ id: randomUUID(), source: name, given, timeoutMs }, never);
    if (judged.outcome === 'processed') return { ok: true, timestamp: null, id: null, secret: null };
    if (judged.outcome === 'aborted') throw new Unjudged('the program stops');
    const { error, message, frames } = judged;
    if (error === 'timeout' || error === 'thread-ended') throw new Unjudged(`${error}: ${message}`);
    // False, by the words of the protocol; all else was thrown.
    if (error !== 'unprocessable')
      observe({
        kind: 'receiving-failed',
        what: `verify of the sender ${name}`,
        error: Object.assign(new Error(message ?? error), { stack: `${message}\n${frames ?? ''}` }),
      });
    return { ok: false, reason: 'no-match' };
  };
}

/** A message is judged, or its time is over: nothing else ends it. */
const never = new AbortController().signal;
