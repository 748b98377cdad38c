/**
 * Which hosts a tunnel may lead to (§4.10): a list of those that are let through, a list of those that are not, and whether that is
 * enforced or only reported. Names are compared as they are asked for, in lower case and without a last dot; what they resolve to is judged
 * by the egress guard, whatever stands here.
 *
 * A glob is a name (`api.example.com`: that one alone), `*.` and a name (`*.example.com`: whatever stands below it, at any depth, and not
 * itself), an address (`192.0.2.1`, `2001:db8::1`: that one alone) or `*` (everything, addresses too). Nothing here makes a canonical text
 * of another spelling: globs were checked when they were declared, and hosts are what a URL parser makes of them.
 */
import { isIpv4Address, parseIpv6Address } from '../http/syntax/ip-address.ts';
import { isDigitCode, isHexCode } from '../http/syntax/uri-characters.ts';

export type HostRules = {
  /** `report`: what would be refused is let through and logged. */
  readonly mode: 'enforce' | 'report';
  /** Globs; null: every host. */
  readonly allow: readonly string[] | null;
  /** Globs; outranks `allow`. */
  readonly deny: readonly string[];
  /** Whose list it is, for the log: `the list of the key`. */
  readonly name?: string | undefined;
};

/** `why` is for operators: it names the list, which a caller need not know. */
export type HostJudgement = { readonly allowed: true } | { readonly allowed: false; readonly why: string };

export type HostsJudgement =
  /** `reported`: what lists in the mode `report` would have refused it for. */
  | { readonly allowed: true; readonly reported: readonly string[] }
  | { readonly allowed: false; readonly why: string };

const allowed: HostJudgement = { allowed: true };
const allowedByAll: HostsJudgement = { allowed: true, reported: [] };

/** RFC 1035 §2.3.4, without the root. */
const hostCharactersMax = 253;
const labelCharactersMax = 63;

/** What one list says of a host, whatever its mode. @param host canonical, an IPv6 address without brackets */
export function judgeHost(rules: HostRules, host: string): HostJudgement {
  const { allow, deny, name = 'the list of hosts' } = rules;
  const denied = deny.find((glob) => matches(glob, host));
  if (denied !== undefined) return { allowed: false, why: `${name} denies ${denied}` };
  if (allow === null || allow.some((glob) => matches(glob, host))) return allowed;
  return { allowed: false, why: `${name} does not allow it` };
}

/** What all lists together say: a host must pass each of them, save those that only report. */
export function judgeHosts(lists: readonly HostRules[], host: string): HostsJudgement {
  const reported: string[] = [];
  for (const rules of lists) {
    const judged = judgeHost(rules, host);
    if (judged.allowed) continue;
    if (rules.mode === 'enforce') return judged;
    reported.push(judged.why);
  }
  return reported.length === 0 ? allowedByAll : { allowed: true, reported };
}

/** Whether a text is a glob, its name in the spelling that hosts are compared in. Of an IPv6 address every spelling is taken, so make it canonical first. */
export function isHostGlob(text: string): boolean {
  if (text === '*') return true;
  if (text.startsWith('*.')) return isName(text.slice(2));
  return isName(text) || isAddress(text);
}

/** Whether a canonical host is an address; one of IPv6 stands without brackets. */
export function isAddress(host: string): boolean {
  return host.includes(':') ? parseIpv6Address(host) !== undefined : isIpv4Address(host);
}

function matches(glob: string, host: string): boolean {
  if (glob === host || glob === '*') return true;
  if (!glob.startsWith('*.')) return false;
  // The dot that the name begins with is part of what must be equal, and something must stand before it.
  return host.length > glob.length - 1 && host.endsWith(glob.slice(1));
}

/** Labels of lower-case letters, digits, hyphens and underscores, which names below which services stand have. */
function isName(text: string): boolean {
  if (text === '' || text.length > hostCharactersMax) return false;
  const labels = text.split('.');
  return labels.every(isLabel) && !isNumber(labels.at(-1) ?? '');
}

function isLabel(label: string): boolean {
  if (label === '' || label.length > labelCharactersMax) return false;
  if (label.startsWith('-') || label.endsWith('-')) return false;
  for (let at = 0; at < label.length; at += 1) {
    const code = label.charCodeAt(at);
    const isLetter = code >= 0x61 && code <= 0x7a;
    if (!isLetter && !isDigitCode(code) && code !== 0x2d && code !== 0x5f) return false;
  }
  return true;
}

/** What makes a host an address or nothing (URL Standard, "ends in a number"): no name has such a last label. */
function isNumber(label: string): boolean {
  const isHex = label.startsWith('0x');
  for (let at = isHex ? 2 : 0; at < label.length; at += 1) {
    const code = label.charCodeAt(at);
    if (!(isHex ? isHexCode(code) : isDigitCode(code))) return false;
  }
  return true;
}
