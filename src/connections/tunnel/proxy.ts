/**
 * The room that leads elsewhere, put together (§4.10): CONNECT here, connect-udp and forwarded requests beside it, all admitted and counted
 * at one desk. Knows no HTTP on the wire: what a client is, the server says.
 */
import type { Dial } from '../../egress/dial.ts';
import type { HttpProxy, ProxyCall, ProxyReply } from '../proxy.ts';
import type { AdmissionDesk } from './admission.ts';
import { readAuthority } from './destination.ts';
import { dialDestination } from './dial-destination.ts';
import { createRelays } from './relay/relays.ts';

export type ProxyOptions = {
  readonly settings: { readonly tunnelIdleMs: number; readonly tunnelHalfClosedMs: number };
  readonly desk: AdmissionDesk;
  /** Of a policy with `everyPort`. */
  readonly dial: Dial;
  readonly forward: Pick<HttpProxy, 'isForeign' | 'forward'>;
  readonly udp: HttpProxy['udp'];
  /** Milliseconds that never go back. */
  readonly monotonic: () => number;
};

export function createProxy({ settings, desk, dial, forward, udp, monotonic }: ProxyOptions): HttpProxy {
  const relays = createRelays({ ...settings, monotonic });

  async function connect(call: ProxyCall): Promise<ProxyReply> {
    const admission = await desk.admit(call, 'connect', readAuthority(call.request.target));
    if (!admission.ok) return admission;
    const { admitted } = admission;
    const dialled = await dialDestination(dial, call, admitted);
    if (!dialled.ok) return dialled;
    const { socket: destination, reached } = dialled;
    destination.allowHalfOpen = true;
    return {
      fields: [],
      join(client) {
        // What it is cut by exists when the relay does, and `open` promises not to cut before it returns.
        const tunnel = admitted.open(reached, (why) => relay.cut(why));
        const relay = relays.join({
          client,
          destination,
          spend: admitted.account.spend,
          onOver: tunnel.close,
        });
      },
      abandon() {
        destination.destroy();
        admitted.release();
      },
    };
  }

  return {
    connect,
    udp,
    isForeign: forward.isForeign,
    forward: forward.forward,
    drain: desk.drain,
    count: desk.count,
  };
}
