/**
 * A webhook endpoint (§2.6, §5.6, §6): where events are sent, which of them, and how they are signed. What it is served as; its secrets
 * stand apart and are never served.
 */

/** Signature schemes of §5.6, each with a shape of the body: §2.6 for the first two, §2.7 for `standard`. */
export const schemes = ['standard', 'timestamped', 'plain'] as const;
export type Scheme = (typeof schemes)[number];

/** Only `timestamped` has modes, which differ in how long a failed delivery is tried again (§6). */
export const modes = ['live', 'sandbox'] as const;
export type Mode = (typeof modes)[number];

/** Why the sender itself stopped sending. One that its owner disabled has no reason. */
export type DisabledReason =
  /** A 410 said that no events are wanted any more (§6). */
  | 'gone'
  /** Nothing was accepted for longer than `endpointDisableSeconds`. */
  | 'failing';

export type Endpoint = {
  /** `ep_...` */
  readonly id: string;
  /** `http` or `https`, without credentials and fragment. */
  readonly url: string;
  readonly description?: string;
  /** Patterns: `products.created`, `products.*`, `*`. */
  readonly events: readonly string[];
  readonly scheme: Scheme;
  readonly mode?: Mode;
  readonly status: 'enabled' | 'disabled';
  readonly disabledReason?: DisabledReason;
  /** Only events of this tenant; absent: of all that its owner may see. */
  readonly tenant?: string;
  /** Sent with every delivery; each value is hidden here (webhooks/outbound/endpoint-headers.ts). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Attempts under way at once. */
  readonly maxInFlight?: number;
  /** Attempts that may begin in a second; absent: no limit. */
  readonly ratePerSecond?: number;
  /** Id of the API key that it was made with, so that what a stolen key made can be found. */
  readonly madeBy?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** The values of members that an endpoint was not given. */
export const endpointDefaults = {
  scheme: 'standard',
  status: 'enabled',
} as const satisfies Partial<Endpoint>;

/** Parses the row of an endpoint. A member with a default that the row lacks has its default. */
export function readEndpoint(doc: string): Endpoint {
  const stored = JSON.parse(doc) as Endpoint;
  return { ...stored, ...endpointDefaults, ...stored };
}

/** One secret of an endpoint. `until`: milliseconds since the epoch at which one that was rotated away stops signing; null: the current one. */
export type EndpointSecret = { readonly secret: string; readonly until: number | null };
