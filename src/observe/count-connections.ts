/** Metrics of connections (§4.10, §4.13). Labels hold words of closed sets: no host, no principal. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { ConnectionObservation } from './observation.ts';

/** From a request and its answer to a tunnel that stays open for a day. */
const tunnelSecondsBuckets = [0.1, 1, 10, 60, 600, 3600, 21_600, 86_400];
const dialSecondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function countConnections(
  registry: Registry,
  faults: { inc(labels: { kind: string }): void },
): (fact: ConnectionObservation) => void {
  const registers = [registry];
  const counter = <N extends string>(name: string, help: string, labelNames: readonly N[]) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });
  const closed = counter('comity_websockets_closed_total', 'WebSockets that ended, by code and by whom.', [
    'code',
    'by',
  ]);
  const refused = counter('comity_tunnels_refused_total', 'Tunnels refused, by kind and code.', [
    'how',
    'code',
  ]);
  const reported = counter('comity_tunnels_reported_total', 'Tunnels opened that a list would refuse.', []);
  const ended = counter('comity_tunnels_closed_total', 'Tunnels that ended, by kind and why.', [
    'how',
    'why',
  ]);
  const bytes = counter('comity_tunnel_bytes_total', 'Octets that ended tunnels carried, by direction.', [
    'direction',
  ]);
  const noMemory = counter('comity_memory_refusals_total', 'Refusals for want of memory, by use.', ['use']);
  const seconds = new Histogram({
    name: 'comity_tunnel_duration_seconds',
    help: 'Time that tunnels were open.',
    buckets: tunnelSecondsBuckets,
    registers,
  });
  const dial = new Histogram({
    name: 'comity_tunnel_connect_seconds',
    help: 'Time from a permitted request to a connection with its destination.',
    buckets: dialSecondsBuckets,
    registers,
  });
  return (fact) => {
    switch (fact.kind) {
      case 'websocket-closed':
        closed.inc({ code: String(fact.code), by: fact.by });
        return;
      case 'tunnel-refused':
        refused.inc({ how: fact.how, code: fact.code });
        return;
      case 'tunnel-reported':
        reported.inc();
        return;
      case 'tunnel-opened':
        dial.observe(((fact.dnsMs ?? 0) + (fact.connectMs ?? 0)) / 1000);
        return;
      case 'tunnel-closed':
        ended.inc({ how: fact.how, why: fact.why });
        bytes.inc({ direction: 'sent' }, fact.sentBytes);
        bytes.inc({ direction: 'received' }, fact.receivedBytes);
        seconds.observe(fact.durationMs / 1000);
        return;
      case 'memory-refused':
        noMemory.inc({ use: fact.use }, fact.refusals);
        return;
      case 'certificate-failed':
      case 'http2-cut':
      case 'connection-failed':
        faults.inc({ kind: fact.kind });
        return;
      case 'certificate-loaded':
    }
  };
}
