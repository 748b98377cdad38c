/** Why no connection was made, and how far it came (§6, §8). The message is for the owner of an endpoint: it names no address. */

export type DialFailureKind = 'refused' | 'dns' | 'connect' | 'tls' | 'timeout';

/** Milliseconds that each part took; null for one that was not begun or not ended, and for the lookup of a literal address. */
export type DialTiming = {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
};

export class DialFailure extends Error {
  override readonly name = 'DialFailure';
  /** Never one of undici's own codes, some of which make it try again. */
  readonly code = 'COMITY_DIAL';
  readonly kind: DialFailureKind;

  /** `cause`: what was thrown, for the operator's log; it may name an address. */
  constructor(kind: DialFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

/** Code of a system or TLS error, such as `ECONNREFUSED`; the empty text where there is none. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
