/**
 * Requests for other servers (§4.10; RFC 9110 §7.6): under the policy of tunnels, one connection to the destination for each. Only `http`:
 * whoever wants `https` or `ws` opens a tunnel, since a proxy that spoke TLS itself would read what nobody gave it to read. Upgrade is
 * taken off with the other fields of the connection, so nothing is ever upgraded on the way.
 *
 * Caches nothing, follows no redirect and tries nothing twice.
 */
import type { Dial } from '../../egress/dial.ts';
import type { Request, Response } from '../../http/message.ts';
import type { ForwardCall } from '../proxy.ts';
import type { Admission } from '../tunnel/admission.ts';
import { dialDestination } from '../tunnel/dial-destination.ts';
import { type CarryLimits, carry } from './carry.ts';
import { createIsForeign, readForeignTarget } from './foreign-target.ts';
import { judgeMessage } from './judge-message.ts';

export type ForwardOptions = {
  readonly admission: Admission;
  readonly dial: Dial;
  readonly limits: CarryLimits;
  /** `host:port` of everything that this program answers for itself: listeners and the public URL. */
  readonly ownOrigins: () => readonly string[];
  /** This proxy's name in Via, a token (RFC 9110 §7.6.3). */
  readonly via?: string;
  /** Milliseconds that never go back. */
  readonly monotonic: () => number;
};

/** The two of `HttpProxy` (proxy.ts) that are fulfilled here. */
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
