/**
 * Keys of senders that name the URL of a certificate in each message (Amazon SNS, PayPal). A forger can name any URL, so Comity fetches only
 * https URLs without a query, from the hosts that the rule pins, and fetches a bounded number of new ones in a minute.
 */
import { X509Certificate } from 'node:crypto';
import { memoryBounds } from '../../memory/bounds.ts';
import { anyMade, type PublicKey, readJwk } from '../signature/key-pair.ts';
import {
  createKeyDiscovery,
  type FetchKeys,
  type KeyDiscovery,
  KeyDiscoveryError,
  type VerifyByKeys,
} from '../signature/trusted-keys.ts';

/** Certificates of one sender that are kept; a new one replaces the oldest that has verified nothing, or else the oldest. */
export const certificatesMax = memoryBounds.certificates.entries;
/** URLs that were not fetched before, of one sender in a minute: all that forgers can cause. */
export const newCertificatesMinuteMax = 10;
const minuteMs = 60_000;
const urlCharactersMax = 500;
/** A certificate is read again after an hour, and with it the time for which it is valid. */
const freshSeconds = 3600;

type Known = { readonly discovery: KeyDiscovery; hasVerified: boolean };

/** @param hosts of certificates @param fetch through the egress guard @param nowMs milliseconds since the epoch */
export function verifyingByCertificates(
  hosts: readonly string[],
  fetch: FetchKeys | undefined,
  nowMs: () => number,
): VerifyByKeys {
  const pinned = hosts.map(patternOf);
  const known = new Map<string, Known>();
  let begun: readonly number[] = [];

  function add(url: string): Known {
    begun = begun.filter((at) => nowMs() - at < minuteMs);
    if (begun.length >= newCertificatesMinuteMax)
      throw new KeyDiscoveryError('too many messages name a certificate that is not known');
    begun = [...begun, nowMs()];
    if (known.size >= certificatesMax) {
      const oldest = [...known].find(([, { hasVerified }]) => !hasVerified) ?? [...known][0];
      known.delete(oldest?.[0] ?? '');
    }
    const read = (content: Uint8Array) => [keyOf(content, nowMs())];
    const discovery = createKeyDiscovery({ url, algorithm: 'rsa', read, fetch, nowMs, freshSeconds });
    const added = { discovery, hasVerified: false };
    known.set(url, added);
    return added;
  }

  return async ({ certificateUrl, ...signed }) => {
    const url = certificateUrl === undefined ? undefined : pinnedUrl(certificateUrl, pinned);
    if (url === undefined) return false;
    const of = known.get(url) ?? add(url);
    const made = await anyMade('rsa', await of.discovery.keys(), signed);
    if (made) of.hasVerified = true;
    return made;
  };
}

function patternOf(host: string): RegExp {
  const labels = host.split('.').map((label) => (label === '*' ? '[a-z0-9-]+' : RegExp.escape(label)));
  return new RegExp(`^${labels.join('\\.')}$`);
}

/** Undefined for a URL that is not fetched. */
function pinnedUrl(written: string, pinned: readonly RegExp[]): string | undefined {
  const url = written.length <= urlCharactersMax ? URL.parse(written) : null;
  if (url === null || url.protocol !== 'https:' || !pinned.some((host) => host.test(url.hostname)))
    return undefined;
  const { port, username, password, search, hash } = url;
  return [port, username, password, search, hash].every((part) => part === '') ? url.href : undefined;
}

/** @throws Error for anything but a certificate that is valid now, with an RSA key that is long enough */
function keyOf(content: Uint8Array, now: number): PublicKey {
  const { publicKey, validFromDate, validToDate } = new X509Certificate(content);
  if (now < validFromDate.getTime() || now > validToDate.getTime())
    throw new Error('the certificate is not valid now');
  const key = readJwk(publicKey.export({ format: 'jwk' }), 'rsa');
  if (key === undefined) throw new Error('the certificate has no RSA key of 2,048 to 8,192 bits');
  return key;
}
