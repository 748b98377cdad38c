/**
 * E-mail addresses that identify accounts (RFC 5321 §4.1.2, RFC 6531): one spelling for each mailbox, so that an address is unique and
 * mail reaches exactly the account that was found. Refused: quoted local parts, comments, address literals. Sub-addresses (`ada+shop@`)
 * are separate mailboxes.
 */

/** RFC 5321 §4.5.3.1.3: 256 octets of a path, without its brackets. */
export const emailCharactersMax = 254;
/** RFC 5321 §4.5.3.1.1. */
const localOctetsMax = 64;
/** RFC 1035 §2.3.4. */
const hostCharactersMax = 253;
/** Before normalization, which may change the length. */
const typedCharactersMax = 2 * emailCharactersMax;

/** RFC 5322 §3.2.3, with visible characters beyond ASCII (RFC 6531 §3.3). */
const dotAtom =
  /^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|[^\p{ASCII}\p{C}\p{Z}])+(?:\.(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|[^\p{ASCII}\p{C}\p{Z}])+)*$/u;
/** Input of IDNA: only letters, marks and digits, because the URL parser accepts more than a mail server. */
const scriptHost = /^[\p{L}\p{M}\p{N}.-]+$/u;
const hostLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const topLabel = /^[a-z]/;

/** Returns the stored spelling: NFKC, trimmed, in lower case, the host in ASCII (IDNA); undefined if invalid. Idempotent. */
export function normalizeEmail(text: string): string | undefined {
  if (text.length > typedCharactersMax) return undefined;
  const folded = text.trim().normalize('NFKC').toLowerCase().normalize('NFKC');
  const at = folded.indexOf('@');
  if (at === -1 || at !== folded.lastIndexOf('@')) return undefined;
  const local = folded.slice(0, at);
  const host = asciiHost(folded.slice(at + 1));
  if (host === undefined || !dotAtom.test(local) || Buffer.byteLength(local) > localOctetsMax)
    return undefined;
  const address = `${local}@${host}`;
  return Buffer.byteLength(address) > emailCharactersMax ? undefined : address;
}

function asciiHost(host: string): string | undefined {
  const labels = host.split('.');
  if (labels.every((label) => hostLabel.test(label))) return isHostName(host, labels) ? host : undefined;
  if (!scriptHost.test(host) || !URL.canParse(`http://${host}`)) return undefined;
  const ascii = new URL(`http://${host}`).hostname;
  const asciiLabels = ascii.split('.');
  return asciiLabels.every((label) => hostLabel.test(label)) && isHostName(ascii, asciiLabels)
    ? ascii
    : undefined;
}

/** A last label that begins with a digit is part of an IPv4 address. */
function isHostName(host: string, labels: readonly string[]): boolean {
  return host.length <= hostCharactersMax && topLabel.test(labels.at(-1) ?? '');
}
