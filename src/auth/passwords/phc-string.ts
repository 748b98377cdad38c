/**
 * How a password hash is written down: `$argon2id$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<tag>`, the PHC string format with base64
 * without padding, as the reference implementation of Argon2 (RFC 9106) writes it. Other functions and versions are not read.
 */

export type Argon2Costs = {
  readonly memoryKibibytes: number;
  readonly passes: number;
  readonly lanes: number;
};

export type PasswordHash = { readonly costs: Argon2Costs; readonly salt: Buffer; readonly tag: Buffer };

const form =
  /^\$argon2id\$v=19\$m=([1-9][0-9]{0,9}),t=([1-9][0-9]{0,9}),p=([1-9][0-9]{0,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{6,86})$/;

export function formatPhcString({ costs, salt, tag }: PasswordHash): string {
  const { memoryKibibytes, passes, lanes } = costs;
  return `$argon2id$v=19$m=${memoryKibibytes},t=${passes},p=${lanes}$${unpadded(salt)}$${unpadded(tag)}`;
}

/** Undefined: not a hash of this form, with a salt of 8 to 64 octets and a tag of 4 to 64. */
export function parsePhcString(text: string): PasswordHash | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [, memory = '', passes = '', lanes = '', salt = '', tag = ''] = match;
  const hash = {
    costs: { memoryKibibytes: Number(memory), passes: Number(passes), lanes: Number(lanes) },
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
  // Bits of the last character that belong to no octet must be zero, and RFC 9106 §3.1 wants 8 KiB for each lane.
  if (unpadded(hash.salt) !== salt || unpadded(hash.tag) !== tag) return undefined;
  return hash.costs.memoryKibibytes >= 8 * hash.costs.lanes ? hash : undefined;
}

function unpadded(octets: Buffer): string {
  return octets.toString('base64').replaceAll('=', '');
}
