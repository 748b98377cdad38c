/** Metrics of webhooks that are sent (§6). Each label has its few values from the start, so that rates show the first. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { WebhookObservation } from './observation.ts';

const attemptSecondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30];

/** @param faults the counter of what somebody should look at, by kind */
export function countWebhooks(
  registry: Registry,
  faults: Counter<'kind'>,
): (observation: WebhookObservation) => void {
  const registers = [registry];
  const attempts = new Counter({
    name: 'comity_delivery_attempts_total',
    help: 'Attempts to deliver a webhook, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'comity_delivery_attempt_duration_seconds',
    help: 'Time of an attempt, from the name to the header section of the answer.',
    buckets: attemptSecondsBuckets,
    registers,
  });
  const disabled = new Counter({
    name: 'comity_endpoints_disabled_total',
    help: 'Endpoints that the sender disabled, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const refusals = new Counter({
    name: 'comity_egress_refused_total',
    help: 'Destinations that the egress guard refused, by reason.',
    labelNames: ['reason'],
    registers,
  });
  for (const outcome of ['delivered', 'failed']) attempts.inc({ outcome }, 0);
  for (const reason of ['gone', 'failing']) disabled.inc({ reason }, 0);
  for (const reason of ['address', 'port', 'own-listener']) refusals.inc({ reason }, 0);
  return (observation) => {
    switch (observation.kind) {
      case 'delivery-attempted':
        attempts.inc({ outcome: observation.outcome });
        seconds.observe(observation.durationMs / 1000);
        return;
      case 'endpoint-disabled':
        disabled.inc({ reason: observation.reason });
        return;
      case 'egress-refused':
        refusals.inc({ reason: observation.reason });
        return;
      case 'sending-failed':
      case 'endpoint-failing':
        faults.inc({ kind: observation.kind });
        return;
      case 'endpoint-left-alone':
      case 'endpoint-answers-again':
      case 'lanes-held':
        return;
    }
  };
}
