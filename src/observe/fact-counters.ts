/**
 * The counters of observations in the metrics. Faults, which an operator should look at, are counted by kind (observation-lines.ts); other
 * observations by what they are about. Labels hold words of closed sets, and start at 0, so that rates show the first event.
 */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Observation, Observe } from './observation.ts';
import { lines } from './observation-lines.ts';

/** The observations that have counters of their own. */
type Counters = {
  readonly [K in Observation['kind']]?: (observation: Extract<Observation, { readonly kind: K }>) => void;
};

/** Counts every observation but `answered` (metrics.ts). */
export function countFacts(registry: Registry): Observe {
  const commits = countCommits(registry);
  const faults = new Counter({
    name: 'comity_faults_total',
    help: 'Observations that an operator should look at, by kind.',
    labelNames: ['kind'],
    registers: [registry],
  });
  const clientErrors = new Counter({
    name: 'comity_client_errors_total',
    help: 'Messages that were not HTTP requests, by code.',
    labelNames: ['code'],
    registers: [registry],
  });
  const counters: Counters = {
    ...commits,
    'client-error': ({ code }) => clientErrors.inc({ code }),
    ...countAccounts(registry),
    ...countWebhooks(registry),
    ...countReceived(registry),
    ...countConnections(registry),
  };
  return (observation) => {
    const { kind } = observation;
    if (lines[kind].isFault === true) faults.inc({ kind });
    (counters[kind] as Observe | undefined)?.(observation);
  };
}

const commitSecondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const unitsBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

function countCommits(registry: Registry): Counters {
  const registers = [registry];
  const commits = new Counter({ name: 'comity_commits_total', help: 'Transactions committed.', registers });
  const commitSeconds = new Histogram({
    name: 'comity_commit_duration_seconds',
    help: 'Time of a transaction, durable at its end.',
    buckets: commitSecondsBuckets,
    registers,
  });
  const units = new Histogram({
    name: 'comity_commit_units',
    help: 'Writes that one transaction committed together.',
    buckets: unitsBuckets,
    registers,
  });
  return {
    'units-committed': (committed) => {
      commits.inc();
      units.observe(committed.units);
      commitSeconds.observe(committed.durationMs / 1000);
    },
  };
}

const attemptSecondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30];

/** Metrics of webhooks that Comity sends (§6). */
function countWebhooks(registry: Registry): Counters {
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
  return {
    'delivery-attempted': ({ outcome, durationMs }) => {
      outcomes[outcome] += 1;
      seconds.observe(durationMs / 1000);
    },
    'endpoint-disabled': ({ reason }) => disabled.inc({ reason }),
    'egress-refused': ({ reason }) => refusals.inc({ reason }),
  };
}

/** Metrics of logins, mail and the audit trail (§5). */
function countAccounts(registry: Registry): Counters {
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
  return {
    'login-judged': ({ outcome }) => logins.inc({ outcome }),
    'mail-sent': () => mails.inc({ outcome: 'sent' }),
    'mail-given-up': () => mails.inc({ outcome: 'given-up' }),
    'audit-dropped': ({ facts }) => dropped.inc(facts),
  };
}

/** From a handler that returns immediately to the longest pause of the default schedule. */
const lagSecondsBuckets = [0.01, 0.05, 0.25, 1, 5, 30, 120, 600, 3600, 21_600, 86_400];

/** Metrics of received webhooks (§4.14). Labels also hold names of declared senders. */
function countReceived(registry: Registry): Counters {
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
  return {
    'webhook-received': ({ sender, outcome, reason }) =>
      received.inc({ sender, outcome, reason: reason ?? '' }),
    'received-handed-on': ({ sender, outcome, failure, lagMs }) => {
      handedOn.inc({ sender, outcome, error: failure ?? '' });
      if (outcome === 'processed') lag.observe({ sender }, lagMs / 1000);
    },
  };
}

/** From one request to a tunnel that stays open for a day. */
const tunnelSecondsBuckets = [0.1, 1, 10, 60, 600, 3600, 21_600, 86_400];
const dialSecondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of connections (§4.10, §4.13), without hosts and principals. */
function countConnections(registry: Registry): Counters {
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
  return {
    'websocket-closed': ({ code, by }) => closed.inc({ code: String(code), by }),
    'tunnel-refused': ({ how, code }) => refused.inc({ how, code }),
    'tunnel-reported': () => reported.inc(),
    'tunnel-opened': ({ dnsMs, connectMs }) => dial.observe(((dnsMs ?? 0) + (connectMs ?? 0)) / 1000),
    'tunnel-closed': ({ how, why, sentBytes, receivedBytes, durationMs }) => {
      ended.inc({ how, why });
      bytes.inc({ direction: 'sent' }, sentBytes);
      bytes.inc({ direction: 'received' }, receivedBytes);
      seconds.observe(durationMs / 1000);
    },
    'memory-refused': ({ use, refusals }) => noMemory.inc({ use }, refusals),
  };
}
