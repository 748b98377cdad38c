/**
 * Forwards a message to a URL of the user's (§4.14.5): the body as it came with its Content-Type and Content-Encoding, the fields that the
 * sender's rule keeps, and signatures of our own in place of the sender's, over one of the three schemes (§5.6). Through the egress guard
 * and with the bounds of the sending side. A 2xx is the acknowledgement, everything else has failed; when it is tried again is not said here.
 *
 * Fields that say where it came from stand in forward-fields.ts. No `v1a` signatures: those are of what the program itself tells.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { DeclaredSender, HandOnTo } from '../../../config/senders.ts';
import type { Exchange, ExchangeOutcome } from '../../../egress/exchange.ts';
import { retryAfter } from '../../outbound/retry-after.ts';
import { standardKey, textKey } from '../../signature/secret.ts';
import type { HandedOn, HandOn } from '../hand-on.ts';
import type { SenderSecret, SenderSecrets } from '../sender-secrets.ts';
import { emptyUnit } from '../settle/conclude.ts';
import { forwardFields } from './forward-fields.ts';

export type ForwardOptions = {
  readonly exchange: Exchange;
  readonly secrets: Pick<SenderSecrets, 'of'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Of the program, for `User-Agent`. */
  readonly version: string;
  /** In which the receiver must answer. */
  readonly webhookTimeoutMs: number;
  /** A longer Retry-After is cut to this. */
  readonly webhookRetryAfterSecondsMax: number;
};

export type ForwardTo = Extract<HandOnTo, { readonly kind: 'forward' }>;

type TimedKey = { readonly key: KeyObject; readonly until: number | null };

/** Statuses with which Retry-After is read, as on the sending side. */
const slowing: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** One for all senders that forward. @throws TypeError where it is given a message of a sender that does not */
export function createForward(options: ForwardOptions): HandOn {
  const { exchange, clock, webhookTimeoutMs } = options;
  const keysOf = createKeys(options.secrets);
  return async (claimed, signal) => {
    const { handOn: to, name } = claimed.sender;
    if (to.kind !== 'forward') throw new TypeError(`${name} does not forward`);
    const keys = keysOf(claimed.sender, to, clock());
    if (typeof keys === 'string') return failed('refused', keys);
    const body = Buffer.from(claimed.content.body, 'base64');
    const timestamp = Math.floor(clock() / 1000);
    const fields = forwardFields(claimed, to, { body, keys, timestamp, version: options.version });
    const outcome = await exchange({
      ...{ url: to.url, method: 'POST', fields, body, timeoutMs: webhookTimeoutMs, signal },
      share: `sender/${name}`,
    });
    return handedOn(outcome, clock(), options.webhookRetryAfterSecondsMax);
  };
}

/** The keys of the secrets that are active, made once for each state of them; a text says why there are none. */
function createKeys(
  secrets: Pick<SenderSecrets, 'of'>,
): (sender: DeclaredSender, to: ForwardTo, now: number) => readonly KeyObject[] | string {
  const made = new WeakMap<readonly SenderSecret[], readonly TimedKey[]>();
  return ({ name }, { scheme }, now) => {
    const all = secrets.of({ sender: name, use: 'forward' });
    let keys = made.get(all);
    if (keys === undefined) {
      const keyOf = scheme === 'standard' ? standardKey : textKey;
      try {
        keys = all.map(({ secret, until }) => ({ key: createSecretKey(keyOf(secret)), until }));
      } catch (error) {
        return error instanceof Error ? error.message : 'a secret cannot be used';
      }
      made.set(all, keys);
    }
    const active = keys.filter(({ until }) => until === null || until > now).map(({ key }) => key);
    return active.length === 0 ? 'there is no secret to sign with' : active;
  };
}

function handedOn(outcome: ExchangeOutcome, at: number, retryAfterSecondsMax: number): HandedOn {
  if (outcome.kind === 'failed') {
    return outcome.failure === 'aborted' ? { outcome: 'aborted' } : failed(outcome.failure, outcome.message);
  }
  const { status, fields, snippet } = outcome;
  if (status >= 200 && status <= 299) {
    return { outcome: 'processed', unit: emptyUnit, statusCode: status };
  }
  return {
    ...failed('status', snippet === '' ? `answered ${status}` : `answered ${status}: ${snippet}`),
    statusCode: status,
    notBefore: slowing.has(status) ? retryAfter(fields, at, retryAfterSecondsMax) : null,
  };
}

function failed(error: string, message: string): Extract<HandedOn, { outcome: 'failed' }> {
  return { outcome: 'failed', error, message, statusCode: null, permanent: false, notBefore: null };
}
