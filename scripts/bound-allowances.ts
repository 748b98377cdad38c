/**
 * Maps, sets and caches that outlive a request and need no row in src/memory/bounds.ts, each group with the reason. No client makes them
 * grow beyond what a setting or the declaration allows. scripts/checks/bounds.ts refuses a container that neither list names, and
 * names here that the code no longer has.
 */

type Allowed = { readonly file: string; readonly name: string };

type Group = {
  readonly reason: string;
  readonly at: readonly (readonly [file: string, ...names: string[]])[];
};

const groups: readonly Group[] = [
  {
    reason:
      'Keyed by the declaration: collections, tables, fields, senders, providers, issuers, routes, versions of the document. Requests add nothing.',
    at: [
      ['src/auth/basis.ts', 'tables'],
      ['src/auth/issuers/verify-issuer-token.ts', 'issuers'],
      ['src/auth/oauth/provider-server.ts', 'kept'],
      ['src/compose-document.ts', 'made'],
      ['src/config/senders/inspect-variable.ts', 'taken'],
      ['src/http/conduct/decide.ts', 'nodes'],
      ['src/openapi/callers.ts', 'roles', 'scopes'],
      ['src/openapi/components.ts', '#kinds', '#interned'],
      ['src/openapi/reach.ts', 'answers', 'refusals'],
      ['src/openapi/schema-names.ts', 'used'],
      ['src/openapi/traits.ts', 'settled'],
      ['src/resources/content-threads/content-threads.ts', 'plain', 'readOnly', 'hidden'],
      ['src/resources/content-threads/thread.ts', 'workshops'],
      ['src/resources/collection/listing.ts', 'declared'],
      ['src/resources/events/seen-event.ts', 'byType'],
      ['src/resources/realtime/readers.ts', '#rules'],
      ['src/resources/router.ts', 'members', 'literals'],
      ['src/resources/webhooks/event-types/resources.ts', 'texts'],
      ['src/resources/webhooks/events/posted-event.ts', 'payloads'],
      ['src/store/change-listeners.ts', '#byTable'],
      ['src/store/declared-indexes.ts', 'indexes'],
      ['src/store/postgres/changes/known-revisions.ts', '#names', '#revs'],
      ['src/store/postgres/commit/committer.ts', '#byName'],
      ['src/store/postgres/open.ts', 'named'],
      ['src/store/postgres/peers.ts', 'ours'],
      ['src/store/postgres/read/point-reads.ts', 'tables'],
      ['src/store/secrets/secret-key-ring.ts', '#keys'],
      ['src/store/sqlite/snapshot.ts', '#versions'],
      ['src/store/sqlite/table-directory.ts', 'tables'],
      ['src/store/sqlite/writer/queue.ts', '#indexOf'],
      ['src/store/sqlite/writer/thread.ts', 'tablesByName'],
      ['src/webhooks/inbound/accept/accept.ts', 'verifiers'],
      ['src/webhooks/inbound/engine/engine.ts', '#queues'],
      ['src/webhooks/inbound/secrets/load.ts', 'receive', 'forward'],
      ['src/webhooks/outbound/fan-out/directory.ts', 'byType'],
      ['src/webhooks/outbound/fan-out/event-rights.ts', 'byName'],
    ],
  },
  {
    reason: 'Routes times methods times statuses, all of them the program’s own; other methods share one.',
    at: [['src/observe/request-cells.ts', '#routes']],
  },
  {
    reason:
      'One for each open connection, stream, WebSocket or tunnel, and what it may have at once; settings bound those: `connectionsMax`, `http2StreamsMax`, `streamsMax`, `realtimePatternsMax`, `tunnelsMax`.',
    at: [
      ['src/auth/credential-ends.ts', '#held', '#byRow', 'listeners'],
      ['src/connections/tunnel/open-tunnels.ts', 'cuts', 'waiting'],
      ['src/connections/tunnel/relay/memory.ts', 'spares'],
      ['src/connections/tunnel/relay/relays.ts', 'relays'],
      ['src/resources/events/shared-batches.ts', 'underWay'],
      ['src/resources/realtime/hub.ts', '#listeners'],
      ['src/resources/realtime/readers.ts', 'held'],
      ['src/resources/realtime/socket.ts', '#subscriptions'],
      ['src/resources/realtime/subscribers.ts', '#byPattern'],
      ['src/server/connection-shares.ts', '#all', '#byAddress', '#reserve', '#holderOf', '#counts'],
      ['src/server/content-watch.ts', '#watched'],
      ['src/server/drain.ts', 'before'],
      ['src/server/front/tls-front.ts', 'carriers'],
      ['src/server/http2/http2-connection.ts', '#open'],
    ],
  },
  {
    reason: 'One for each use of the memory budget, all of them the program’s own.',
    at: [['src/memory/budget.ts', '#byUse', '#refusals']],
  },
  {
    reason: 'One for each request under way, or for what it waits for.',
    at: [
      ['src/auth/login-limit.ts', '#gates'],
      ['src/auth/sessions/sightings.ts', 'underWay'],
      ['src/auth/verified-credentials.ts', '#underWay'],
      ['src/memory/budget.ts', '#byHolder', '#shared', '#waiting'],
      ['src/model/fair-queue.ts', '#parties'],
      ['src/egress/connect-first.ts', 'pending'],
      ['src/egress/exchanges.ts', '#retiring'],
      ['src/egress/origin-gate.ts', '#shares', '#turns', 'waiting'],
      ['src/egress/resolve.ts', 'underWay'],
      ['src/resources/webhooks/endpoints/create.ts', '#byOwner'],
      ['src/store/backup-file/running-backups.ts', '#stops'],
      ['src/store/lines.ts', '#lines', '#rows', '#waiting', '#holders'],
      ['src/store/postgres/connection/connection.ts', '#sent', '#unsent'],
      ['src/store/postgres/read/gather.ts', 'gathered'],
      ['src/webhooks/outbound/send/event-source.ts', 'reading'],
    ],
  },
  {
    reason: 'Ends with the request, statement, transaction or turn of the event loop that made it.',
    at: [
      ['src/connections/websocket/frames.ts', '#deflated'],
      ['src/model/access-function.ts', 'unused', 'roles', 'scopes'],
      ['src/resources/realtime/logged-event.ts', '#values'],
      ['src/webhooks/outbound/fan-out/event-rights.ts', 'members'],
      ['src/webhooks/outbound/fan-out/gather.ts', 'lists', '#staying'],
      ['src/webhooks/outbound/fan-out/with-deliveries.ts', 'endpoints'],
      ['src/resources/document/schema-errors.ts', 'seen'],
      ['src/resources/document/withheld.ts', 'readOnly', 'hidden'],
      ['src/resources/query/sql-fields.ts', '#folded', '#qualifiers'],
      ['src/resources/webhooks/handling/overlay.ts', 'entries', 'seen'],
      ['src/resources/webhooks/handling/transaction.ts', 'known'],
      ['src/store/postgres/commit/commit-batch.ts', 'touched'],
      ['src/store/postgres/commit/inspection.ts', 'rows', 'named', 'leaving'],
      ['src/store/postgres/commit/outcome.ts', 'touched'],
      ['src/store/postgres/commit/writes.ts', '#tables', '#named'],
      ['src/store/postgres/compile/parameters.ts', '#slots'],
      ['src/store/postgres/compile/walk.ts', 'equal', 'fields'],
      ['src/store/sqlite/writer/transaction.ts', 'touched'],
      ['src/webhooks/receive/header-reading.ts', 'fields'],
    ],
  },
  {
    reason: 'One for each kind of fact that is logged.',
    at: [['src/observe/log.ts', 'seen']],
  },
  {
    reason: 'Empty, and nothing is added.',
    at: [
      ['src/http/syntax/media-type.ts', 'parameters'],
      ['src/resources/take-content.ts', 'parameters'],
      ['src/resources/webhooks/handling/asking.ts', 'parameters'],
    ],
  },
  {
    reason: 'The endpoints of one type of event, counted in `eventCandidates` (src/memory/bounds.ts).',
    at: [['src/webhooks/outbound/fan-out/matcher.ts', 'byOwner', 'byTenant', 'asked', '#always']],
  },
  {
    reason: 'Inside something that is weighed as a whole: an entry of a cache, or the cache itself.',
    at: [
      ['src/memory/octet-cache.ts', '#young', '#old'],
      ['src/store/postgres/read/plan.ts', 'statements'],
    ],
  },
  {
    reason: 'Mails on their way: `mailsWaitingMax`.',
    at: [['src/mail/outbox.ts', '#paused', '#attempts']],
  },
  {
    reason:
      'One for each process that shares the database, or for what it declares otherwise; at most 1,000.',
    at: [
      ['src/store/postgres/peers.ts', 'told'],
      ['src/webhooks/outbound/lanes/divide.ts', 'giving'],
      ['src/webhooks/outbound/lanes/leases.ts', '#listeners', '#mine', '#giving'],
      ['src/webhooks/outbound/lanes/process-watch.ts', '#seen'],
    ],
  },
  {
    reason: 'One for each endpoint, or for each tenant or owner of endpoints: `endpointsMax`.',
    at: [
      ['src/webhooks/outbound/engine/alarm.ts', '#times'],
      ['src/webhooks/outbound/engine/engine.ts', 'asking', 'crowded'],
      ['src/webhooks/outbound/engine/looks.ts', '#wanted'],
      ['src/webhooks/outbound/engine/queues.ts', '#queues', '#idle'],
      ['src/webhooks/outbound/engine/reading.ts', 'waiting'],
      ['src/webhooks/outbound/engine/roster.ts', 'ours', 'disabled'],
      ['src/webhooks/outbound/engine/turns.ts', '#parties', '#partyOf'],
      ['src/webhooks/outbound/fan-out/directory-state.ts', 'endpoints', 'counts'],
      ['src/webhooks/outbound/fan-out/directory.ts', 'listeners'],
      ['src/webhooks/outbound/fan-out/kept-rows.ts', 'rows'],
      ['src/webhooks/outbound/fan-out/pattern-index.ts', 'byPattern'],
      ['src/webhooks/outbound/fan-out/principals.ts', 'known'],
      ['src/webhooks/outbound/health/health.ts', '#disabling', '#running'],
      ['src/webhooks/outbound/recovery/recoveries.ts', '#runs'],
      ['src/webhooks/outbound/wakes.ts', 'listeners'],
    ],
  },
  {
    reason:
      'One for each delivery or message that is being sent or handled: `webhookInFlightMax`, `handOnInFlightMax`, and the rows of one read.',
    at: [
      ['src/webhooks/inbound/engine/engine.ts', 'held'],
      ['src/webhooks/inbound/engine/sender-queue.ts', '#taken', '#released'],
      ['src/webhooks/inbound/handle/handler-thread.ts', 'runs'],
      ['src/webhooks/inbound/handle/handler-threads.ts', '#threads', '#solitary'],
      ['src/webhooks/inbound/handle/thread-calls.ts', '#underWay'],
      ['src/webhooks/inbound/handle/thread.ts', 'runs'],
      ['src/webhooks/outbound/engine/capacity.ts', '#quick', '#parties'],
      ['src/webhooks/outbound/engine/endpoint-queue.ts', '#taken', '#released'],
      ['src/webhooks/outbound/engine/engine.ts', 'held'],
    ],
  },
];

export const boundAllowances: readonly Allowed[] = groups.flatMap(({ at }) =>
  at.flatMap(([file, ...names]) => names.map((name) => ({ file, name }))),
);
