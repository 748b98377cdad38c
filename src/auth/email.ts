/**
 * E-mail addresses as accounts are known by (RFC 5321 §4.1.2, RFC 6531): one spelling for each mailbox, so that an address is unique
 * and a mail goes to exactly the account that was found. Only plain forms are taken: no quoted local part, no comment, no address
 * literal. Sub-addresses (`ada+shop@`) are mailboxes of their own.
 */

/** RFC 5321 §4.5.3.1.3: 256 octets of a path, without its brackets. */
export const emailCharactersMax = 254;
/** RFC 5321 §4.5.3.1.1. */
const localOctetsMax = 64;
/** RFC 1035 §2.3.4. */
const hostCharactersMax = 253;
/** Before folding, which can make a text shorter or longer. */
const typedCharactersMax = 2 * emailCharactersMax;

/** RFC 5322 §3.2.3, with characters beyond ASCII (RFC 6531 §3.3) that can be seen. */
const dotAtom =
  /^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|[^\p{ASCII}\p{C}\p{Z}])+(?:\.(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|[^\p{ASCII}\p{C}\p{Z}])+)*$/u;
/** What IDNA is asked for: letters, marks and digits alone, since the parser of URLs forgives more than a mail server would. */
const scriptHost = /^[\p{L}\p{M}\p{N}.-]+$/u;
const hostLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const topLabel = /^[a-z]/;

/**
 * The spelling that is stored and looked for: NFKC, without space around it, in lower case, the host in its ASCII form (IDNA).
 * Undefined: no address. The result normalizes to itself.
 */
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

/** A last label that begins with a digit is part of an IPv4 address, a literal without its brackets. */
function isHostName(host: string, labels: readonly string[]): boolean {
  return host.length <= hostCharactersMax && topLabel.test(labels.at(-1) ?? '');
}
