/** Metrics of accounts, webhooks and connections. Closed labels start at 0, so that rates show the first event. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type {
  AccountObservation,
  ConnectionObservation,
  ReceivedObservation,
  WebhookObservation,
} from './observation.ts';

const attemptSecondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30];

/**
 * Metrics of webhooks that Comity sends (§6).
 * @param faults the counter of facts that an operator should look at, by kind
 */
export function countWebhooks(
  registry: Registry,
  faults: Counter<'kind'>,
): (observation: WebhookObservation) => void {
  const registers = [registry];
  // Added up here: a labelled counter takes 1 us of each delivery.
  const outcomes = { delivered: 0, failed: 0 };
  new Counter({
    name: 'comity_delivery_attempts_total',
    help: 'Attempts to deliver a webhook, by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(outcomes)) this.inc({ outcome }, count);
    },
  });
  const seconds = new Histogram({
    name: 'comity_delivery_attempt_duration_seconds',
    help: 'Time of an attempt, from the lookup of the name to the header section of the response.',
    buckets: attemptSecondsBuckets,
    registers,
  });
  const disabled = new Counter({
    name: 'comity_endpoints_disabled_total',
    help: 'Endpoints that Comity disabled, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const refusals = new Counter({
    name: 'comity_egress_refused_total',
    help: 'Destinations that the egress guard refused, by reason.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['gone', 'failing']) disabled.inc({ reason }, 0);
  for (const reason of ['address', 'port', 'own-listener']) refusals.inc({ reason }, 0);
  return (observation) => {
    switch (observation.kind) {
      case 'delivery-attempted':
        outcomes[observation.outcome] += 1;
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

/** Metrics of logins, mail and the audit trail (§5). */
export function countAccounts(
  registry: Registry,
  faults: Counter<'kind'>,
): (observation: AccountObservation) => void {
  const registers = [registry];
  const logins = new Counter({
    name: 'comity_logins_total',
    help: 'Password checks and logins by a provider, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const mails = new Counter({
    name: 'comity_mails_total',
    help: 'Mails that were sent or given up, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const dropped = new Counter({
    name: 'comity_audit_dropped_total',
    help: 'Entries missing in the audit trail.',
    registers,
  });
  for (const outcome of ['succeeded', 'failed', 'limited']) logins.inc({ outcome }, 0);
  for (const outcome of ['sent', 'given-up']) mails.inc({ outcome }, 0);
  return (observation) => {
    switch (observation.kind) {
      case 'login-judged':
        logins.inc({ outcome: observation.outcome });
        return;
      case 'mail-sent':
        mails.inc({ outcome: 'sent' });
        return;
      case 'mail-given-up':
        mails.inc({ outcome: 'given-up' });
        return;
      case 'audit-dropped':
        dropped.inc(observation.facts);
        return;
      case 'session-reused':
      case 'hashing-refused':
      case 'mail-delayed':
      case 'issuer-failed':
      case 'provider-failed':
        faults.inc({ kind: observation.kind });
        return;
      case 'mail-shown':
      case 'signing-key-made':
      case 'secret-key-made':
      case 'secrets-encrypted':
      case 'signing-key-retired':
        return;
    }
  };
}

/** From a handler that returns immediately to the longest pause of the default schedule. */
const lagSecondsBuckets = [0.01, 0.05, 0.25, 1, 5, 30, 120, 600, 3600, 21_600, 86_400];

/** Metrics of received webhooks (§4.14). Labels hold names of declared senders and words of closed sets. */
export function countReceived(
  registry: Registry,
  faults: { inc(labels: { kind: string }): void },
): (fact: ReceivedObservation) => void {
  const registers = [registry];
  const received = new Counter({
    name: 'comity_webhooks_received_total',
    help: 'Webhooks that senders posted, by sender, outcome and reason of a refusal.',
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
    help: 'Time from the receipt or the replay of a message until it is processed.',
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
      // Counted as handed on.
      case 'function-failed':
        return;
      case 'sender-paused':
      case 'handler-thread-ended':
      case 'receiving-failed':
        faults.inc({ kind: fact.kind });
    }
  };
}

/** From one request to a tunnel that stays open for a day. */
const tunnelSecondsBuckets = [0.1, 1, 10, 60, 600, 3600, 21_600, 86_400];
const dialSecondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of connections (§4.10, §4.13). Labels hold words of closed sets, no host and no principal. */
export function countConnections(
  registry: Registry,
  faults: { inc(labels: { kind: string }): void },
): (fact: ConnectionObservation) => void {
  const registers = [registry];
  const counter = <N extends string>(name: string, help: string, labelNames: readonly N[]) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });
  const closed = counter(
    'comity_websockets_closed_total',
    'Closed WebSockets, by code and by the side that closed them.',
    ['code', 'by'],
  );
  const refused = counter('comity_tunnels_refused_total', 'Tunnels refused, by kind and code.', [
    'how',
    'code',
  ]);
  const reported = counter(
    'comity_tunnels_reported_total',
    'Opened tunnels that a list of hosts would refuse.',
    [],
  );
  const ended = counter('comity_tunnels_closed_total', 'Closed tunnels, by kind and reason.', ['how', 'why']);
  const bytes = counter('comity_tunnel_bytes_total', 'Octets in closed tunnels, by direction.', [
    'direction',
  ]);
  const noMemory = counter('comity_memory_refusals_total', 'Refusals for lack of memory, by use.', ['use']);
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
