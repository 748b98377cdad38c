/** Metrics of received webhooks (§4.14). Labels hold names of senders, which the configuration declares, and words of closed sets. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { ReceivedObservation } from './observation.ts';

/** From a handler that answers at once to the longest pause of the default schedule. */
const lagSecondsBuckets = [0.01, 0.05, 0.25, 1, 5, 30, 120, 600, 3600, 21_600, 86_400];

export function countReceived(
  registry: Registry,
  faults: { inc(labels: { kind: string }): void },
): (fact: ReceivedObservation) => void {
  const registers = [registry];
  const received = new Counter({
    name: 'comity_webhooks_received_total',
    help: 'Webhooks that senders posted, by sender, outcome and why they were refused.',
    labelNames: ['sender', 'outcome', 'reason'],
    registers,
  });
  const handedOn = new Counter({
    name: 'comity_received_handed_on_total',
    help: 'Attempts to hand on received messages, by sender, outcome and kind of failure.',
    labelNames: ['sender', 'outcome', 'error'],
    registers,
  });
  const lag = new Histogram({
    name: 'comity_received_lag_seconds',
    help: 'Time from the receipt of a message, or its replay, to its being processed.',
    labelNames: ['sender'],
    buckets: lagSecondsBuckets,
    registers,
  });
  return (fact) => {
    switch (fact.kind) {
      case 'webhook-received':
        received.inc({ sender: fact.sender, outcome: fact.outcome, reason: fact.reason ?? '' });
        return;
      case 'received-handed-on':
        handedOn.inc({ sender: fact.sender, outcome: fact.outcome, error: fact.failure ?? '' });
        if (fact.outcome === 'processed') lag.observe({ sender: fact.sender }, fact.lagMs / 1000);
        return;
      case 'sender-paused':
      case 'handler-thread-ended':
      case 'receiving-failed':
        faults.inc({ kind: fact.kind });
    }
  };
}
