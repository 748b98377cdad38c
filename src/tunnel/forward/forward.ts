/**
 * Forwards requests to other servers (§4.10; RFC 9110 §7.6) under the policy of tunnels, over one connection for each.
 * Only `http`: clients open a tunnel for `https` and `ws`, because a proxy that terminated TLS could read their
 * content. Upgrade is removed with the other connection fields. No caching, no redirects, no retries.
 */
import type { Dial } from '../../egress/dial.ts';
import type { Request, Response } from '../../http/message.ts';
import { parseFieldList } from '../../http/syntax/field-list.ts';
import { isHost } from '../../http/syntax/host.ts';
import { isUnderstoodTransferCoding } from '../../http/syntax/transfer-coding.ts';
import type { Admission } from '../admission.ts';
import { dialDestination } from '../dial-destination.ts';
import type { ForwardCall } from '../proxy-call.ts';
import type { Refusal } from '../refusal.ts';
import { type CarryLimits, carry } from './carry.ts';
import { createIsForeign, type ForeignTarget, readForeignTarget } from './foreign-target.ts';

export type ForwardOptions = {
  readonly admission: Admission;
  readonly dial: Dial;
  readonly limits: CarryLimits;
  /** `host:port` of everything that this program serves itself: listeners and the public URL. */
  readonly ownOrigins: () => readonly string[];
  /** This proxy's name in Via, a token (RFC 9110 §7.6.3). */
  readonly via?: string;
  readonly monotonic: () => number;
};

/** The part of `HttpProxy` (proxy-call.ts) that is implemented here. */
export type Forward = {
  readonly isForeign: (request: Request) => boolean;
  readonly forward: (call: ForwardCall) => Promise<Response | undefined>;
};

export function createForward(options: ForwardOptions): Forward {
  const { admission, dial, limits, via = 'comity', monotonic } = options;
  return {
    isForeign: createIsForeign(options.ownOrigins),
    async forward(call) {
      const target = readForeignTarget(call.request);
      const admittance = await admission(call, 'forward', target?.destination);
      if (!admittance.ok) return admittance.refused;
      const { admitted } = admittance;
      const { destination } = admitted;
      const unsound = target === undefined ? undefined : judgeMessage(call.request, target);
      if (target === undefined || unsound !== undefined) {
        return admitted.refuse(unsound ?? { code: 'tunnel_target_invalid', error: 'http_request_error' });
      }
      const dialled = await dialDestination(dial, call, admitted);
      if (!dialled.ok) return dialled.refused;
      const { socket, reached } = dialled;
      const { path } = target;
      return carry({ call, admitted, socket, reached, destination, path, via, limits, monotonic });
    },
  };
}

/**
 * Returns the fault of a request that is to be forwarded (RFC 9112 §3.2, §6.1), or undefined. It does the kernel's
 * checks in the kernel's order, because no resource sees the request. The server has judged HTTP/1.0 framing.
 */
function judgeMessage(request: Request, { scheme }: ForeignTarget): Refusal | undefined {
  const { fields, version, method, rawFields } = request;
  const { host, hostCount } = fields;
  if (hostCount > 1 || (host === undefined ? version === '1.1' : !isHost(host))) {
    return bad('host_invalid');
  }
  if (fields.transferEncoding !== undefined && !isUnderstoodTransferCoding(fields.transferEncoding)) {
    return bad('transfer_coding_unknown');
  }
  if (scheme === 'https') return { ...bad('tunnel_target_invalid'), message: throughConnect };
  if (!namesFields(rawFields))
    return { ...bad('field_invalid'), message: 'Connection must be a list of tokens' };
  if (method === 'TRACE' && (fields.transferEncoding ?? fields.contentLength ?? '0') !== '0') {
    return bad('content_unexpected');
  }
  if (version !== '1.0' && fields.expect !== undefined && fields.expect.toLowerCase() !== '100-continue') {
    return bad('expectation_failed');
  }
  return undefined;
}

const throughConnect = 'https URLs need a tunnel: CONNECT host:443, then TLS within it';

function bad(code: Refusal['code']): Refusal {
  return { code, error: 'http_request_error' };
}

/** Fields that Connection names must be removed; a malformed list could leave some. */
function namesFields(rawFields: readonly string[]): boolean {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== 'connection') continue;
    if (parseFieldList(rawFields[at + 1] ?? '') === undefined) return false;
  }
  return true;
}
