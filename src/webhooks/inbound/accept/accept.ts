/**
 * Accepts messages of senders (§4.14), in two steps. `verify` judges the octets as they came, before anything in them is parsed, and then reads
 * what tells the message apart and what type it has. `keep` commits it: one unit, whose first insert is what finds repetitions, so that no two
 * requests anywhere can both be the first. Handing on is somebody else's: it sees the row as soon as it stands.
 *
 * No fact that is told of names a body, a signature or a secret.
 */
import type { KeyObject } from 'node:crypto';
import type { DeclaredSender } from '../../../config/senders.ts';
import type { Problem } from '../../../http/problem.ts';
import type { Observe } from '../../../observe/observation.ts';
import type { MaybePromise, Store } from '../../../store/store.ts';
import { type ChallengeAnswer, factsOf } from '../../receive/message-facts.ts';
import { type FetchKeys, KeyDiscoveryError } from '../../signature/discover-keys.ts';
import type { MacPrimitives } from '../../signature/prepared-keys.ts';
import type { RefusalReason } from '../../signature/refusal.ts';
import type { VerifyEd25519 } from '../../signature/trusted-keys.ts';
import { type RuleVerdict, verifyByRule } from '../../signature/verify-by-rule.ts';
import type { SenderSecrets } from '../sender-secrets.ts';
import { type Incoming, IncomingMessage } from './incoming.ts';
import { createSlicedMac } from './node-mac.ts';
import { createSenderEd25519 } from './sender-ed25519.ts';
import { createSenderKeys, type SenderKeys } from './sender-keys.ts';
import { createTimeText } from './time-text.ts';
import { unitOf, type Verified } from './unit-of.ts';

export type AcceptOptions = {
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly secrets: Pick<SenderSecrets, 'of'>;
  readonly store: Pick<Store, 'commit'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly newId: () => string;
  readonly observe: Observe;
  /** Where senders reach this program, for those that sign the URL; undefined: at the Host that they name. */
  readonly publicUrl: string | undefined;
  /** Told when a message of the sender is kept that is none yet. */
  readonly accepted?: (sender: string) => void;
  /** Asks for keys that a sender publishes, through the egress guard; undefined: `keysUrl` has no effect. */
  readonly fetchKeys?: FetchKeys | undefined;
};

export type Accept = {
  /** Judges a message. Answers at once but where a signature by Ed25519 has to be looked at. */
  verify(sender: DeclaredSender, request: Incoming, body: Uint8Array): MaybePromise<Verdict>;
  /** Keeps a message that is none yet. Rejects with StoreUnavailable alone. */
  keep(sender: DeclaredSender, verified: Verified): Promise<'accepted' | 'duplicate'>;
};

export type Verdict =
  | { readonly ok: true; readonly verified: Verified }
  /** It asks for an answer, and is not kept. */
  | { readonly ok: true; readonly challenge: ChallengeAnswer }
  | { readonly ok: false; readonly problem: Problem };

/** What is known of a sender beforehand. */
type Verifier = { readonly keys: SenderKeys; readonly ed25519: VerifyEd25519 | undefined };

export function createAccept(options: AcceptOptions): Accept {
  const { senders, secrets, store, clock, newId, observe, publicUrl, fetchKeys } = options;
  const timeText = createTimeText();
  const primitives = createSlicedMac();
  const verifiers = new Map<string, Verifier>();
  for (const sender of senders.values()) {
    const keys = createSenderKeys(sender, secrets, primitives);
    verifiers.set(sender.name, { keys, ed25519: createSenderEd25519(sender, fetchKeys, clock) });
  }
  return {
    verify(sender, request, body) {
      const verifier = verifiers.get(sender.name);
      if (verifier === undefined) throw new Error(`the sender ${sender.name} is not declared`);
      const message = new IncomingMessage(request, body, publicUrl);
      const verdict = judge(sender, verifier, message, { nowMs: clock(), primitives });
      if (!(verdict instanceof Promise)) return conclude(sender, message, verdict, observe);
      return verdict.then(
        (found) => conclude(sender, message, found, observe),
        (error) => refuseUnjudged(sender, error, observe),
      );
    },
    async keep(sender, verified) {
      const now = clock();
      const at = { ms: now, text: timeText(now) };
      const commit = await store.commit(await unitOf(sender, verified, newId(), at));
      if (commit.outcome === 'committed') {
        options.accepted?.(sender.name);
        return told('accepted');
      }
      if (commit.outcome === 'superseded' && commit.change === 0) return told('duplicate');
      throw new Error(`a message could not be kept: ${commit.outcome}`);

      function told<O extends 'accepted' | 'duplicate'>(outcome: O): O {
        observe({ kind: 'webhook-received', sender: sender.name, outcome, reason: undefined });
        return outcome;
      }
    },
  };
}

function judge(
  { rule }: DeclaredSender,
  { keys, ed25519 }: Verifier,
  message: IncomingMessage,
  { nowMs, primitives }: { readonly nowMs: number; readonly primitives: MacPrimitives<KeyObject> },
): MaybePromise<RuleVerdict> {
  const prepared = keys(nowMs);
  if (prepared === undefined) return noMatch;
  return verifyByRule(rule.signature, message, prepared, { primitives, nowMs, ed25519 });
}

const noMatch: RuleVerdict = { ok: false, reason: 'no-match' };

function conclude(
  sender: DeclaredSender,
  message: IncomingMessage,
  verdict: RuleVerdict,
  observe: Observe,
): Verdict {
  if (!verdict.ok) return refuse(sender, verdict.reason, observe);
  const facts = factsOf(sender.rule, message);
  if (facts.challenge === undefined) return { ok: true, verified: { message, facts } };
  observe({ kind: 'webhook-received', sender: sender.name, outcome: 'challenge', reason: undefined });
  return { ok: true, challenge: facts.challenge };
}

function refuse({ name }: DeclaredSender, reason: RefusalReason, observe: Observe): Verdict {
  observe({ kind: 'webhook-received', sender: name, outcome: 'refused', reason });
  const code = reason === 'stale' || reason === 'ahead' ? 'signature_stale' : 'signature_invalid';
  return { ok: false, problem: { code, context: { reason } } };
}

/** That keys cannot be had now is not the message's fault: the sender tries again (§6.4). */
function refuseUnjudged({ name }: DeclaredSender, error: unknown, observe: Observe): Verdict {
  if (!(error instanceof KeyDiscoveryError)) throw error;
  observe({ kind: 'webhook-received', sender: name, outcome: 'refused', reason: 'keys-unavailable' });
  observe({ kind: 'receiving-failed', what: `the keys of the sender ${name}`, error });
  return { ok: false, problem: { code: 'unavailable' } };
}
