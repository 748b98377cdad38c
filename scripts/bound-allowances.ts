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
      "Live as long as one request: groups and results (`aggregateColumnsMax`), one sum, which has a number for each power of ten of a double, the items of a bulk request (`bulkItemsMax`), the columns of an import (`columnsMax`) and the names of a dry run (`namesMax`), and what a sender's rule names in a message.",
    at: [
      ['src/webhooks/receive/json-texts.ts', '#found'],
      ['src/resources/collection/list-page.ts', 'columns'],
      ['src/resources/collection/bulk.ts', 'places'],
      ['src/resources/collection/import.ts', '#columns'],
      ['src/resources/collection/import-trial.ts', '#names'],
      ['src/files/incoming.ts', '#hashes'],
      ['src/files/document-files.ts', '#arrived'],
      ['src/files/uploads/upload-writing.ts', '#writers'],
      ['src/resources/query/aggregation.ts', '#named'],
      ['src/store/aggregate.ts', '#byExponent'],
    ],
  },
  {
    reason:
      'Of the client `comity/client`, in the program or the page of its user: collections by name, the live lists that it opened, who listens to one, and what it read, which it bounds itself (`locationsMax`, `answersMax`, `charactersMax`).',
    at: [
      ['src/client/index.ts', 'collections', 'locations', 'uploadMethods'],
      ['src/client/live.ts', 'followers', 'opened', '#listeners'],
      ['src/client/send.ts', '#answers'],
    ],
  },
  {
    reason:
      'Keyed by the configuration: collections, tables, fields, senders, providers, issuers, routes, versions of the document. Requests add no entries.',
    at: [
      ['src/config/mail-templates.ts', 'values'],
      ['src/config/named-in-functions.ts', 'codes', '#constants'],
      ['src/cli/print-types.ts', 'readOnly', '#names', '#types'],
      ['src/config/declared-schema.ts', '#compiled', 'allowed'],
      ['src/config/inspect-schema.ts', 'counts'],
      ['src/logic/threads/handler-thread-program.ts', 'files'],
      ['src/observe/differences.ts', 'noticed'],
      ['src/accounts/credential-ends.ts', 'tables'],
      ['src/accounts/tokens/issuer-tokens.ts', 'issuers'],
      ['src/accounts/oauth/provider-server.ts', 'kept'],
      ['src/config/actions.ts', 'collections'],
      ['src/config/inspect-access.ts', 'made'],
      ['src/config/sender-secrets.ts', 'taken'],
      ['src/http/conduct/graph.ts', 'nodes'],
      ['src/openapi/components.ts', '#kinds', '#interned', 'seen'],
      ['src/openapi/document.ts', 'made'],
      ['src/model/access.ts', 'roles', 'scopes'],
      ['src/openapi/document.ts', 'found', 'used'],
      ['src/openapi/traits.ts', 'settled', 'answers', 'refusals'],
      ['src/resources/content-threads/content-threads.ts', 'plain', 'readOnly', 'hidden'],
      ['src/resources/content-threads/content-thread.ts', 'workshops'],
      ['src/resources/collection/listing.ts', '#declared'],
      ['src/resources/collection/query.ts', 'byName'],
      ['src/files/file-links.ts', 'byName'],
      ['src/resources/relations/related.ts', 'views'],
      ['src/resources/relations/relations.ts', 'references', 'counts', 'tables'],
      ['src/openapi/related-schemas.ts', 'reached'],
      ['src/resources/collection/visible-references.ts', 'hiding', 'found'],
      ['src/resources/collection/serve-collection.ts', 'known'],
      ['src/resources/events/seen-event.ts', 'byType', 'open', 'tags'],
      ['src/resources/events/seen-event.ts', 'byType', 'judged'],
      ['src/resources/events/history.ts', 'hiddenNow'],
      ['src/realtime/readers.ts', '#rules'],
      ['src/kernel/router.ts', 'members', 'literals'],
      ['src/webhooks/sending/event-types/event-types.ts', 'texts'],
      ['src/webhooks/sending/events/post-event.ts', 'compiled'],
      ['src/store/table-changes.ts', '#byTable'],
      ['src/migrations/document-work.ts', '#validators'],
      ['src/migrations/judge-documents.ts', 'tables', '#changedBy'],
      ['src/cli/migrate-documents.ts', 'totals'],
      ['src/store/declared-indexes.ts', 'indexes'],
      ['src/store/postgres/changes.ts', '#names', '#revs', '#confirmedRevs'],
      ['src/store/postgres/commit/committer.ts', '#byName'],
      ['src/store/postgres/postgres-store.ts', 'named'],
      ['src/store/postgres/search-sweep.ts', 'frequent'],
      ['src/store/postgres/peers.ts', 'ours'],
      ['src/store/postgres/read/point-reads.ts', 'tables'],
      ['src/store/secrets/secret-key-ring.ts', '#keys'],
      ['src/store/sqlite/sqlite-schema.ts', 'tables'],
      ['src/store/sqlite/writer/writer-client.ts', '#indexOf', '#nameOf'],
      ['src/store/sqlite/writer/apply.ts', 'prepared'],
      ['src/webhooks/receiving/accept-message.ts', 'verifiers'],
      ['src/webhooks/receiving/handing-on-engine.ts', '#queues'],
      ['src/jobs/scheduler.ts', '#jobs', '#waiting'],
      ['src/webhooks/receiving/sender-secrets.ts', 'receive', 'forward', '#tokens'],
      ['src/webhooks/sending/fan-out/directory.ts', 'byType'],
      ['src/webhooks/sending/fan-out/matcher.ts', 'byName'],
      ['src/webhooks/sending/fan-out/content-filter.ts', '#collections'],
    ],
  },
  {
    reason: 'One entry for each route, method and status of the program; unknown methods share one.',
    at: [['src/observe/metrics.ts', '#routes']],
  },
  {
    reason:
      'One entry for each open connection, stream, WebSocket or tunnel, or for an item that it holds. Settings bound these: `connectionsMax`, `http2StreamsMax`, `streamsMax`, `realtimePatternsMax`, `tunnelsMax`.',
    at: [
      ['src/accounts/credential-ends.ts', '#held', '#byRow', 'listeners'],
      ['src/tunnel/admission.ts', 'cuts', 'waiting'],
      ['src/tunnel/relay.ts', 'spares'],
      ['src/tunnel/relay.ts', 'relays'],
      ['src/resources/events/shared-batches.ts', 'underWay'],
      ['src/realtime/hub.ts', '#listeners'],
      ['src/realtime/readers.ts', 'held'],
      ['src/realtime/socket.ts', '#subscriptions'],
      ['src/realtime/hub.ts', '#byPattern'],
      ['src/server/connection.ts', '#all', '#byAddress', '#reserve', '#holderOf', '#counts'],
      ['src/server/listener.ts', 'before'],
      ['src/server/port.ts', 'carriers'],
      ['src/server/http2/http2-server.ts', '#open'],
    ],
  },
  {
    reason: 'One entry for each use of the memory budget; the program defines the uses.',
    at: [['src/memory/budget.ts', '#byUse', '#refusals']],
  },
  {
    reason: 'One entry for each request under way, or for a resource that it waits for.',
    at: [
      ['src/accounts/attempt-limit.ts', '#gates'],
      ['src/cli/workers/worker-messages.ts', '#asked'],
      ['src/accounts/sessions/sessions.ts', 'underWay'],
      ['src/accounts/verified-credentials.ts', '#underWay'],
      ['src/memory/budget.ts', '#byHolder', '#shared', '#waiting'],
      ['src/model/fair-queue.ts', '#parties'],
      ['src/egress/dial.ts', 'pending'],
      ['src/egress/origin-requests.ts', '#waiting'],
      ['src/egress/exchanges.ts', '#retiring'],
      ['src/egress/exchanges.ts', '#shares', '#turns', 'waiting'],
      ['src/egress/resolve.ts', 'underWay'],
      ['src/webhooks/sending/endpoints/create-endpoint.ts', '#byOwner'],
      ['src/store/backup-file/write-file.ts', '#stops'],
      ['src/store/lines.ts', '#returning', '#waiting', '#holders'],
      ['src/store/lines.ts', '#lines', '#rows'],
      ['src/store/postgres/connection/connection.ts', '#sent', '#unsent'],
      ['src/store/postgres/read/point-reads.ts', 'gathered'],
      ['src/webhooks/sending/sent-event.ts', 'reading'],
    ],
  },
  {
    reason: 'Released with the request, statement, transaction or turn of the event loop that created it.',
    at: [
      ['src/realtime/websocket/frames.ts', '#deflated'],
      ['src/resources/collection/member.ts', 'names'],
      ['src/store/related-rows.ts', '#known', '#lacking', 'values'],
      ['src/resources/relations/related.ts', '#found', '#versions'],
      ['src/resources/events/parent-looks.ts', '#found', '#lacking'],
      ['src/realtime/hub.ts', 'confirmed'],
      ['src/resources/events/child-messages.ts', 'byLook'],
      ['src/logic/transaction/cascade.ts', 'isNamed'],
      ['src/logic/transaction/long-deletion.ts', 'seen'],
      ['src/model/access-function.ts', 'unused', 'roles', 'scopes'],
      ['src/model/search/search-index.ts', 'seen'],
      ['src/realtime/readers.ts', '#values', '#shown'],
      ['src/webhooks/sending/fan-out/matcher.ts', 'members', 'judged'],
      ['src/webhooks/sending/fan-out/with-deliveries.ts', '#lists', '#staying'],
      ['src/webhooks/sending/fan-out/with-deliveries.ts', 'sent'],
      ['src/config/schema-errors.ts', 'seen'],
      ['src/config/declared-schema.ts', '#known'],
      ['src/resources/document/closed-members.ts', 'readOnly', 'hidden'],
      ['src/resources/query/sql-condition.ts', '#qualifiers'],
      ['src/logic/transaction/overlay.ts', '#entries', '#found', '#leant', '#overtaken'],
      ['src/logic/transaction/calls.ts', '#underWay'],
      ['src/logic/transaction/transaction.ts', 'known', '#accounts'],
      ['src/store/postgres/commit/committer.ts', 'touched'],
      ['src/store/postgres/commit/flight.ts', 'rows', 'named', 'leaving', 'touched'],
      ['src/store/postgres/commit/commit-table.ts', '#tables', '#named'],
      ['src/store/postgres/compile/expressions.ts', '#slots'],
      ['src/store/postgres/compile/walk.ts', 'equal', 'fields'],
      ['src/store/sqlite/writer/apply.ts', 'touched'],
      ['src/migrations/judge-documents.ts', 'missing', '#faults', '#fillable', '#failures'],
      ['src/webhooks/receive/message.ts', 'fields'],
    ],
  },
  {
    reason: 'One entry for each worker: `processes`.',
    at: [
      ['src/cli/workers/serve-on-workers.ts', '#members'],
      ['src/store/sqlite/writer/writer-thread.ts', '#ports', '#recent', '#last'],
    ],
  },
  {
    reason:
      'One entry for each open event stream, WebSocket or tunnel, which `streamsMax`, `connectionsMax` and `tunnelsMax` admit.',
    at: [['src/observe/open-connections.ts', 'open']],
  },
  {
    reason: 'One entry for each preview that is made or waits: `previewsWaitingMax`.',
    at: [['src/files/previews.ts', 'underWay']],
  },
  {
    reason: 'One entry for each folder of the folder of files: two characters, at most 1,296 of them.',
    at: [['src/files/folder-place.ts', '#settledShards']],
  },
  {
    reason: 'One entry for each kind of observation.',
    at: [['src/observe/log.ts', 'seen']],
  },
  {
    reason:
      'Places in the code of the program that errors came from: no client can choose them, and it is emptied at 1,000.',
    at: [['src/observe/source-stack.ts', 'known']],
  },
  {
    reason: 'Always empty.',
    at: [
      ['src/http/syntax/media-type.ts', 'parameters'],
      ['src/kernel/message-facts.ts', 'parameters'],
      ['src/logic/function-run.ts', 'names'],
      ['src/logic/transaction/carry-out.ts', 'parameters'],
    ],
  },
  {
    reason: 'The endpoints of one event type, counted in `eventCandidates` (src/memory/bounds.ts).',
    at: [['src/webhooks/sending/fan-out/matcher.ts', 'byOwner', 'byTenant', 'asked', '#always']],
  },
  {
    reason: 'Part of a cache or of a cache entry, whose bound includes it.',
    at: [
      ['src/memory/octet-cache.ts', '#young', '#old'],
      ['src/store/postgres/read/postgres-query.ts', 'statements'],
    ],
  },
  {
    reason:
      'One entry for each process on the database, or for each difference in its configuration; at most 1,000.',
    at: [
      ['src/store/postgres/peers.ts', 'told'],
      ['src/work/lanes.ts', 'giving'],
      ['src/work/lane-leases.ts', '#listeners', '#mine', '#giving'],
      ['src/work/lane-leases.ts', '#seen'],
    ],
  },
  {
    reason: 'One entry for each endpoint, or for each tenant or owner of endpoints: `endpointsMax`.',
    at: [
      ['src/work/timers.ts', '#times'],
      ['src/webhooks/sending/delivery-engine.ts', '#asking', '#crowded'],
      ['src/webhooks/sending/endpoint-queue.ts', '#queues', '#idle'],
      ['src/work/work-engine.ts', '#unread'],
      ['src/webhooks/sending/endpoint-roster.ts', 'ours', 'disabled', '#wanted'],
      ['src/work/due-queue.ts', '#parties', '#partyOf'],
      ['src/webhooks/sending/fan-out/directory.ts', '#listeners'],
      ['src/webhooks/sending/fan-out/endpoints-in-memory.ts', 'byId', 'counts', 'rows', '#known'],
      ['src/model/event.ts', '#byPattern'],
      ['src/webhooks/sending/endpoint-health.ts', '#disabling', '#running'],
      ['src/webhooks/sending/steps.ts', '#runs'],
      ['src/webhooks/sending/wakes.ts', 'listeners'],
    ],
  },
  {
    reason:
      'One entry for each delivery or message with a running attempt: `webhookInFlightMax`, `handOnInFlightMax`, and the rows of one read.',
    at: [
      ['src/webhooks/receiving/handing-on-engine.ts', '#held'],
      ['src/work/work-lines.ts', '#underWay', '#called'],
      ['src/logic/threads/handler-thread.ts', 'runs'],
      ['src/logic/threads/handler-threads.ts', '#threads', '#solitary'],
      ['src/logic/threads/handler-arguments.ts', '#underWay'],
      ['src/logic/threads/handler-run.ts', '#files'],
      ['src/logic/threads/handler-thread-program.ts', 'runs'],
      ['src/webhooks/sending/capacity.ts', '#quick', '#parties'],
      ['src/webhooks/sending/delivery-engine.ts', '#held'],
      ['src/work/due-queue.ts', '#taken', '#released'],
    ],
  },
  {
    reason:
      'Files of the configuration that a developer edits, their folders, and the processes that one change after the other starts.',
    at: [
      ['src/cli/dev/dev.ts', '#watchers', '#files', '#processes'],
      ['src/config/declaration-places.ts', 'parsed'],
    ],
  },
  {
    reason: 'Timers of an application in a test, which ends with the test.',
    at: [['src/testing.ts', '#waiting']],
  },
];

export const boundAllowances: readonly Allowed[] = groups.flatMap(({ at }) =>
  at.flatMap(([file, ...names]) => names.map((name) => ({ file, name }))),
);
