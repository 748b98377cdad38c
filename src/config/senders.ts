/** Senders of webhooks (§4.14): their declaration and its checked form. */
import type { PresetName, SenderRule } from '../webhooks/presets.ts';

import type { HmacRule, TokenRule } from '../webhooks/signature/signature-rule.ts';
import type { Handler } from './handler.ts';

/** What a user writes under `senders`, by the name in the path: `{base}/webhooks/billing`. */
/** @template R the calls on the collections; never: not known */
export type SenderDeclaration<R = never> = {
  readonly description?: string;
  /** A preset: `stripe`, `github`, `standard`... The members below replace single parts of it. */
  readonly preset?: PresetName;
  /** Parts of the preset's signature, or a complete one. */
  readonly signature?: Partial<HmacRule> | TokenRule;
  readonly dedupe?: SenderRule['dedupe'];
  readonly type?: SenderRule['type'];
  readonly challenge?: SenderRule['challenge'];
  readonly keep?: SenderRule['keep'];
  /**
   * Environment variable with its secrets, separated by commas. Default `BILLING_WEBHOOK_SECRET` for `billing`. If it is not set, Comity
   * creates a secret at the first start and prints it once; `comity senders rotate-secret` rotates it.
   */
  readonly secretVariable?: string;
  /** Keys whose Ed25519 signatures (`v1a`) are accepted too: `whpk_` and base64. */
  readonly publicKeys?: readonly string[];
  /** URL of a JWKS with such keys, fetched through the egress guard. */
  readonly keysUrl?: string;
  /** Processes its messages. Without `handler` and `forward`, messages wait in the inbox to be marked. */
  readonly handler?: Handler<R>;
  /** Forwards its messages with a new signature. */
  readonly forward?: ForwardDeclaration;
  /** Seconds from each failed attempt to process a message to the next; after the last one it is `failed`. */
  readonly schedule?: readonly number[];
  /** Messages processed at once; 1 keeps their order. */
  readonly inFlightMax?: number;
};

export type ForwardDeclaration = {
  /** http or https; `COMITY_EGRESS_ALLOW` must allow a private address. */
  readonly url: string;
  /** Default `standard`. */
  readonly scheme?: 'standard' | 'timestamped' | 'plain';
  /** Default `BILLING_FORWARD_SECRET` for `billing`; otherwise like `secretVariable`. */
  readonly secretVariable?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

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
  /** Undefined: the setting applies. */
  readonly inFlightMax: number | undefined;
};

export type HandOnTo =
  /** The function runs on another thread, which imports the configuration again. */
  | { readonly kind: 'handler' }
  | {
      readonly kind: 'forward';
      readonly url: URL;
      readonly scheme: 'standard' | 'timestamped' | 'plain';
      readonly secretVariable: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'inbox' };

const minuteS = 60;
const hourS = 3600;

/** Nine attempts in 27 h 37 min 35 s, so that people can correct an overnight fault before the last. */
export const handOnScheduleDefault: readonly number[] = [
  ...[5, 30, 2 * minuteS, 5 * minuteS, 30 * minuteS],
  ...[2 * hourS, 5 * hourS, 20 * hourS],
];
