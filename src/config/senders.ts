/**
 * Senders of webhooks that this program receives (§4.14): what a configuration declares of them, and what becomes of it.
 */
import type { PresetName } from '../webhooks/presets/presets.ts';
import type { SenderRule } from '../webhooks/presets/sender-rule.ts';
import type { HmacRule, TokenRule } from '../webhooks/signature/signature-rule.ts';
import type { Handler } from './handler.ts';

/** What a user writes under `senders`, by the name that stands in the path: `{base}/webhooks/billing`. */
export type SenderDeclaration = {
  readonly description?: string;
  /** Whose conduct it has: `stripe`, `github`, `standard` ... What stands below replaces single parts of it. */
  readonly preset?: PresetName;
  /** Parts of the preset's signature, or a whole one. */
  readonly signature?: Partial<HmacRule> | TokenRule;
  readonly dedupe?: SenderRule['dedupe'];
  readonly type?: SenderRule['type'];
  readonly challenge?: SenderRule['challenge'];
  readonly keep?: SenderRule['keep'];
  /**
   * Variable of the environment that holds its secrets, with commas between several. Default `BILLING_WEBHOOK_SECRET` for `billing`. Where it
   * is not set, a secret is made at the first start, printed once, and rotated by `comity senders rotate-secret`.
   */
  readonly secretVariable?: string;
  /** Keys whose Ed25519 signatures (`v1a`) are taken besides: `whpk_` and base64. */
  readonly publicKeys?: readonly string[];
  /** JWKS where the sender publishes such keys; asked through the egress guard. */
  readonly keysUrl?: string;
  /** What handles its messages. With neither this nor `forward` they wait in the inbox to be marked. */
  readonly handler?: Handler;
  /** Sends them on, signed anew. */
  readonly forward?: ForwardDeclaration;
  /** Seconds from each failed attempt to hand a message on to the next; after the last it is `failed`. */
  readonly schedule?: readonly number[];
  /** Messages handed on at once; 1: in the order in which they came. */
  readonly inFlightMax?: number;
};

export type ForwardDeclaration = {
  /** http or https; private addresses have to be let through by `COMITY_EGRESS_ALLOW`. */
  readonly url: string;
  /** Default `standard`. */
  readonly scheme?: 'standard' | 'timestamped' | 'plain';
  /** Default `BILLING_FORWARD_SECRET` for `billing`; as `secretVariable`. */
  readonly secretVariable?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A declaration with every default filled in and every mistake told. */
export type DeclaredSender = {
  readonly name: string;
  readonly description: string;
  readonly preset: PresetName | null;
  readonly rule: SenderRule;
  readonly secretVariable: string;
  readonly publicKeys: readonly string[];
  readonly keysUrl: URL | undefined;
  readonly handOn: HandOnTo;
  readonly schedule: readonly number[];
  /** Undefined: as the setting says. */
  readonly inFlightMax: number | undefined;
};

export type HandOnTo =
  /** The function itself is called on another thread, which imports the configuration again. */
  | { readonly kind: 'handler' }
  | {
      readonly kind: 'forward';
      readonly url: URL;
      readonly scheme: 'standard' | 'timestamped' | 'plain';
      readonly secretVariable: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  /** It waits to be marked. */
  | { readonly kind: 'inbox' };

const minuteS = 60;
const hourS = 3600;

/** Nine attempts in 27 h 37 min 35 s: a fault over a night is mended before the last. */
export const handOnScheduleDefault: readonly number[] = [
  ...[5, 30, 2 * minuteS, 5 * minuteS, 30 * minuteS],
  ...[2 * hourS, 5 * hourS, 20 * hourS],
];
