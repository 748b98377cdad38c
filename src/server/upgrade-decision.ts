/**
 * What becomes of an Upgrade over HTTP/1.1 (§4.13; RFC 9110 §7.8), read off the message alone: an Upgrade is an offer, and who declines it
 * answers as if it had not been made. With octets that came behind it: node:http drops those of a declined one, and so the connection
 * ends with the answer.
 *
 * Whether the handshake is sound is not judged here. An unsound one is refused by the resource, with a reason.
 */
import { judgeH2cUpgrade, tokensOf } from '../connections/h2c/judge-upgrade.ts';

export type UpgradeRequest = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly rawFields: readonly string[];
};

export type UpgradeConditions = {
  /** The connection is cleartext, and no server in front hands on what it did not understand (h2c smuggling). */
  readonly h2c: boolean;
  /** Something leads to other servers. */
  readonly udp: boolean;
  readonly h2cContentBytesMax: number;
  readonly fieldsBytesMax: number;
};

/** `unspoken`: the request means nothing without its Upgrade, which is not taken: there is no ordinary answer to it. */
export type UpgradeDecision = 'websocket' | 'connect-udp' | 'h2c' | 'unspoken' | 'declined';

/** The client's order of preference decides between those that the server takes. */
export function decideUpgrade(request: UpgradeRequest, conditions: UpgradeConditions): UpgradeDecision {
  const { version, rawFields } = request;
  if (version !== '1.1' || !tokensOf(rawFields, 'connection').includes('upgrade')) return 'declined';
  for (const protocol of tokensOf(rawFields, 'upgrade')) {
    if (protocol === 'websocket' && isBare(request)) return 'websocket';
    if (protocol === 'connect-udp' && conditions.udp && isBare(request)) return 'connect-udp';
    // RFC 9484: needs a network interface of the machine.
    if (protocol === 'connect-ip' && isBare(request)) return 'unspoken';
    if (protocol === 'h2c' && conditions.h2c && takesH2c(request, conditions)) return 'h2c';
  }
  return 'declined';
}

/** A GET without content: what follows it are octets of the other protocol. */
function isBare({ method, rawFields }: UpgradeRequest): boolean {
  if (method !== 'GET') return false;
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    const name = rawFields[index]?.toLowerCase();
    if (name === 'transfer-encoding' || name === 'expect') return false;
    if (name === 'content-length' && rawFields[index + 1] !== '0') return false;
  }
  return true;
}

function takesH2c(request: UpgradeRequest, conditions: UpgradeConditions): boolean {
  const { h2cContentBytesMax: contentBytesMax, fieldsBytesMax } = conditions;
  return judgeH2cUpgrade(request, { contentBytesMax, fieldsBytesMax }).ok;
}
