/**
 * The relays of a process: they share memory, and one timer that looks at all of them for those that carry nothing (§8). A timer for each
 * would be set anew with every chunk; this one costs a comparison a relay, ten times in the shortest of their times.
 */
import type { TunnelEnd } from '../../../observe/observation.ts';
import type { BufferedFlow } from './flow.ts';
import { createRelayMemory } from './memory.ts';
import { findReadBuffer } from './read-buffer.ts';
import { Relay, type RelayCall } from './relay.ts';

export type RelaysOptions = {
  readonly tunnelIdleMs: number;
  readonly tunnelHalfClosedMs: number;
  /** Milliseconds that never go back. */
  readonly monotonic: () => number;
};

export type Relays = {
  /** Begins to carry. What comes back ends it from outside. */
  readonly join: (call: RelayCall) => { readonly cut: (why: TunnelEnd) => void };
};

const looksPerIdleTime = 10;
const lookIntervalMsMin = 10;
const lookIntervalMsMax = 5000;

export function createRelays({ tunnelIdleMs, tunnelHalfClosedMs, monotonic }: RelaysOptions): Relays {
  const relays = new Set<Relay>();
  const shortest = Math.min(tunnelIdleMs, tunnelHalfClosedMs) / looksPerIdleTime;
  const intervalMs = Math.max(lookIntervalMsMin, Math.min(lookIntervalMsMax, shortest));
  let buffered: BufferedFlow | undefined;
  let timer: NodeJS.Timeout | undefined;

  /** Made for the first relay: a program without tunnels pays nothing. */
  function bufferedFlow(): BufferedFlow | undefined {
    const parts = findReadBuffer();
    return parts === undefined ? undefined : { parts, memory: createRelayMemory(), monotonic };
  }

  function look(): void {
    const nowMs = monotonic();
    for (const relay of relays) relay.look(nowMs, tunnelIdleMs, tunnelHalfClosedMs);
  }

  return {
    join(call) {
      buffered ??= bufferedFlow();
      const relay = new Relay({
        ...call,
        onOver(why, sentBytes, receivedBytes) {
          relays.delete(relay);
          if (relays.size === 0) {
            clearInterval(timer);
            timer = undefined;
          }
          call.onOver(why, sentBytes, receivedBytes);
        },
      });
      relays.add(relay);
      timer ??= setInterval(look, intervalMs).unref();
      relay.start(call.client.head, buffered);
      return relay;
    },
  };
}
