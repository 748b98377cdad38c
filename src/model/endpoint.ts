/**
 * A webhook endpoint (§2.6, §5.6, §6) as served: its URL, its events and its signature. Its secrets are stored
 * elsewhere and never served.
 */

/** Signature schemes of §5.6, each with a shape of the body: §2.6 for the first two, §2.7 for `standard`. */
export const schemes = ['standard', 'timestamped', 'plain'] as const;
export type Scheme = (typeof schemes)[number];

/** Only `timestamped` has modes, which differ in their retry schedules (§6). */
export const modes = ['live', 'sandbox'] as const;
export type Mode = (typeof modes)[number];

/** Signature versions of `standard`. `v1` is always sent; `v1a` needs no shared secret. */
export const signatureVersions = ['v1', 'v1a'] as const;
export type SignatureVersion = (typeof signatureVersions)[number];

/** Why Comity disabled the endpoint; absent if its owner did. */
export type DisabledReason =
  /** The endpoint answered 410 (§6). */
  | 'gone'
  /** No delivery succeeded for longer than `endpointDisableSeconds`. */
  | 'failing';

export type Endpoint = {
  readonly id: string;
  /** `http` or `https`, without credentials and fragment. */
  readonly url: string;
  readonly description?: string;
  /** Patterns: `products.created`, `products.*`, `*`. */
  readonly events: readonly string[];
  readonly scheme: Scheme;
  readonly mode?: Mode;
  /** Signatures that a delivery carries; only for the scheme `standard`. Default: both. */
  readonly signatures?: readonly SignatureVersion[];
  readonly status: 'enabled' | 'disabled';
  readonly disabledReason?: DisabledReason;
  /** Only events of this tenant; absent: of all that its owner may see. */
  readonly tenant?: string;
  /** Sent with every delivery; their values are hidden here (webhooks/sent-headers.ts). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxInFlight?: number;
  /** Attempts that may start in a second; absent: no limit. */
  readonly ratePerSecond?: number;
  /** Only events whose resource passes this filter (webhooks/sending/fan-out/content-filter.ts). */
  readonly where?: Readonly<Record<string, unknown>>;
  /** A JSON Pointer into the resource: events with one value there are sent in their order (webhooks/sending/delivery-order.ts). */
  readonly orderBy?: string;
  /** Members of the resource that are not sent. */
  readonly omit?: readonly string[];
  /** The body in place of that of the scheme (webhooks/sending/body-template.ts). */
  readonly template?: string;
  /** Id of the API key that created it, to find what a stolen key created. */
  readonly madeBy?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export const endpointDefaults = {
  scheme: 'standard',
  status: 'enabled',
} as const satisfies Partial<Endpoint>;

/** Parses the row of an endpoint and fills in defaults. */
export function readEndpoint(doc: string): Endpoint {
  const stored = JSON.parse(doc) as Endpoint;
  return { ...stored, ...endpointDefaults, ...stored };
}

/** A secret of an endpoint. `until`: ms since the epoch at which a rotated one stops signing; null: the current one. */
export type EndpointSecret = { readonly secret: string; readonly until: number | null };
