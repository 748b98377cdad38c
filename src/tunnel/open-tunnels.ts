/**
 * The open tunnels of all kinds: reports their opening and closing, cuts them when their credential ends, and at the
 * end of a drain. Two modes, *serving* and *draining*; the second is final.
 */
import type { Known } from '../model/principal.ts';
import type { Observe, TunnelEnd, TunnelKind } from '../observe/observation.ts';
import type { OpenConnections } from '../observe/open-connections.ts';
import type { Destination } from './destination.ts';

export type Reached = {
  readonly address: string;
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
};

export type OpenTunnel = {
  /** Emits `tunnel-closed` and releases the place. Further calls do nothing. */
  readonly close: (why: TunnelEnd, sentBytes: number, receivedBytes: number) => void;
};

export type Opening = {
  readonly known: Known;
  readonly peer: string;
  readonly how: TunnelKind;
  readonly destination: Destination;
  readonly reached: Reached;
  /** Objections of host rules in the mode `report`. */
  readonly reported: readonly string[];
  readonly cut: (why: TunnelEnd) => void;
  readonly giveBack: () => void;
  /** Octets that it has carried, in both directions. */
  readonly octets: () => number;
};

export type OpenTunnels = {
  readonly open: (opening: Opening) => OpenTunnel;
  /** Resolves when every place is released, or when the open tunnels were cut at the bound. */
  readonly drain: (boundMs: number) => Promise<void>;
  readonly isDraining: () => boolean;
  readonly look: () => void;
};

/** @param options.count places in use, including those of tunnels that are being opened */
export function openTunnels(options: {
  readonly observe: Observe;
  readonly monotonic: () => number;
  readonly count: () => number;
  readonly connections: Pick<OpenConnections, 'enter'>;
}): OpenTunnels {
  const { observe, monotonic, count, connections } = options;
  const cuts = new Set<(why: TunnelEnd) => void>();
  const waiting = new Set<() => void>();
  let isDraining = false;
  let isOver = false;

  function open(opening: Opening): OpenTunnel {
    const { known, peer, how, destination, reached, reported, cut, giveBack, octets } = opening;
    const { host, port } = destination;
    const principal = known.principal.id;
    const { address, dnsMs, connectMs } = reached;
    const startedMs = monotonic();
    // A distinct function for each, which is its identity.
    const cutOnce = (why: TunnelEnd): void => {
      if (cuts.has(cutOnce)) cut(why);
    };
    cuts.add(cutOnce);
    if (reported.length > 0) {
      observe({ kind: 'tunnel-reported', principal, how, host, port, why: reported.join('; ') });
    }
    observe({ kind: 'tunnel-opened', peer, principal, how, host, port, address, dnsMs, connectMs });
    const about = (): string => `${how} ${host}:${port}`;
    const leave = connections.enter({ kind: 'tunnel', principal, peer, about, octets });
    const stopListening = known.onEnd(() => cutOnce('revoked'));
    if (isOver) queueMicrotask(() => cutOnce('drained'));
    return {
      close(why, sentBytes, receivedBytes) {
        if (!cuts.delete(cutOnce)) return;
        stopListening();
        leave();
        giveBack();
        const durationMs = monotonic() - startedMs;
        const carried = { address, sentBytes, receivedBytes, durationMs };
        observe({ kind: 'tunnel-closed', principal, how, host, port, ...carried, why });
      },
    };
  }

  return {
    open,
    drain(boundMs) {
      isDraining = true;
      if (count() === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          isOver = true;
          for (const cut of [...cuts]) cut('drained');
          finish();
        }, boundMs);
        const finish = (): void => {
          clearTimeout(timer);
          waiting.delete(finish);
          resolve();
        };
        waiting.add(finish);
      });
    },
    isDraining: () => isDraining,
    look() {
      if (count() === 0) for (const finish of waiting) finish();
    },
  };
}
