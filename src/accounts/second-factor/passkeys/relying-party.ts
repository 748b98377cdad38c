/** The relying party of passkeys (WebAuthn §4): the domain that they belong to, and the origins of the pages that may use them. */
import { isIP } from 'node:net';
import { ConfigurationError } from '../../../config/inspection.ts';
import type { Settings } from '../../../config/settings.ts';

export type RelyingParty = {
  /** Shown by browsers. */
  readonly name: string;
  readonly id: string;
  readonly origins: readonly string[];
};

/**
 * Without settings, passkeys belong to the host of the public URL; without that too, to `localhost`, which browsers trust, because an
 * IP address cannot be a relying party.
 * @param name shown by browsers @param origin the origin that clients see, as far as it is known
 * @throws ConfigurationError if an origin is not on the domain
 */
export function createRelyingParty(
  { publicUrl, passkeyOrigins, passkeyRelyingPartyId }: Settings,
  name: string,
  origin: () => string,
): () => RelyingParty {
  const listed = passkeyOrigins
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  const read = (): RelyingParty => {
    const own = publicUrl ?? onLocalhost(origin());
    const origins = listed.length > 0 ? listed : [own];
    return { name, origins, id: passkeyRelyingPartyId ?? new URL(origins[0] ?? own).hostname };
  };
  if (listed.length > 0 || passkeyRelyingPartyId !== undefined) refuseForeignOrigins(read());
  return read;
}

function onLocalhost(listening: string): string {
  const url = new URL(listening);
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) url.hostname = 'localhost';
  return url.origin;
}

function refuseForeignOrigins({ id, origins }: RelyingParty): void {
  const foreign = origins.filter((origin) => {
    const host = new URL(origin).hostname;
    return host !== id && !host.endsWith(`.${id}`);
  });
  if (foreign.length === 0) return;
  throw new ConfigurationError(
    foreign.map(
      (origin) =>
        `COMITY_PASSKEY_ORIGINS has ${origin}, which is not on the domain ${id} of the passkeys: set COMITY_PASSKEY_RELYING_PARTY_ID to a domain that all origins share`,
    ),
  );
}
