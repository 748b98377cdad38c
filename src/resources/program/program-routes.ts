/**
 * Resources about the program itself: health, metrics, the OpenAPI document and its pages. Only the metrics need a
 * credential.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { preferredMediaType } from '../../http/syntax/accept.ts';
import { parseCredentials } from '../../http/syntax/authorization.ts';
import { type ActionLimits, actionResource } from '../../kernel/action.ts';
import { json, named } from '../../kernel/documentation.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { authenticated, isAdministrator, type Known } from '../../model/principal.ts';
import { type ActivitySeries, activityNames, type Metrics } from '../../observe/metrics.ts';
import { type MaybePromise, type Store, StoreUnavailable } from '../../store/store.ts';
import { contentTag, type Document, documentResource, serviceTag } from './document.ts';

export type Asset = {
  readonly path: string;
  readonly mediaType: string;
  readonly cacheControl: string;
  readonly fields: readonly string[];
  readonly read: () => Promise<string | Uint8Array> | string | Uint8Array;
};

export type ProgramOptions = Health & {
  readonly metrics: Pick<Metrics, 'contentType' | 'render' | 'activity'>;
  readonly limits: ActionLimits;
  /** A part of the OpenAPI document in a version, as JSON in UTF-8. */
  readonly openApi: (asked: {
    readonly version: string | undefined;
    readonly part: string | undefined;
  }) => MaybePromise<{ readonly content: Uint8Array; readonly tag: string } | { readonly refused: string }>;
  readonly assets: readonly Asset[];
  /** With which a scraper reads the metrics. */
  readonly metricsToken: string | undefined;
  readonly base: string;
  /** The path before every path that clients see: `/backend`, or empty. */
  readonly root: string;
  readonly hasDashboard: boolean;
};

export function programResources(options: ProgramOptions): readonly Resource[] {
  const { metrics, metricsToken, openApi } = options;
  return [
    entranceResource(options),
    ...healthResources(options),
    documentResource({
      documentation: {
        name: 'Metrics',
        read: {
          id: 'readMetrics',
          summary: 'Read metrics in the Prometheus text format',
          description: 'Administrators, and the token of `COMITY_METRICS_TOKEN`.',
          gives: { representation: { 'text/plain': { schema: { type: 'string' } } } },
        },
      },
      path: '/metrics',
      mediaType: metrics.contentType,
      cacheControl: 'no-store',
      stable: false,
      permission: (principal) => (isAdministrator(principal) || principal === scraper ? 'granted' : 'denied'),
      ...(metricsToken === undefined ? {} : { identify: identifyScraper(metricsToken) }),
      read: async () => ({ content: await metrics.render() }),
    }),
    activityResource(options),
    documentResource({
      documentation: {
        name: 'OpenApi',
        read: {
          id: 'readOpenApi',
          summary: 'Read the OpenAPI document',
          parameters: [
            {
              name: 'version',
              in: 'query',
              description: 'Version of the OpenAPI Specification: 3.1 for tools that do not know 3.2 yet.',
              schema: { type: 'string', enum: ['3.2', '3.1'], default: '3.2' },
            },
            {
              name: 'part',
              in: 'query',
              description: '`operator`: keys, endpoints, deliveries, received webhooks and the program.',
              schema: { type: 'string', enum: ['application', 'operator'], default: 'application' },
            },
          ],
          gives: { representation: json({ type: 'object' }) },
          codes: ['query_parameter_invalid'],
        },
      },
      path: '/openapi.json',
      mediaType: 'application/json',
      cacheControl: 'no-cache',
      read: ({ query }: Ask) => openApi({ version: valueIn(query, 'version'), part: valueIn(query, 'part') }),
    }),
    ...options.assets.map((asset) => documentResource({ ...asset, read: readOnce(asset) })),
    ...options.assets.filter(({ mediaType }) => mediaType.startsWith('text/html')).map(slashed),
  ];
}

const countsSchema = { type: 'array', items: { type: 'integer', minimum: 0 } };

const seriesSchema = {
  type: 'object',
  description: 'Counts of periods that follow each other, the oldest first; the last one is under way.',
  properties: {
    from: { type: 'string', format: 'date-time', description: 'The beginning of the first period.' },
    stepSeconds: { type: 'integer', description: 'The length of a period.' },
    requests: { ...countsSchema, description: 'Requests answered.' },
    clientErrors: { ...countsSchema, description: 'Those of them with a status from 400 to 499.' },
    serverErrors: { ...countsSchema, description: 'Those with a status of 500 and above.' },
    writes: { ...countsSchema, description: 'Units of changes that were committed.' },
    delivered: { ...countsSchema, description: 'Attempts to deliver a webhook that succeeded.' },
    undelivered: { ...countsSchema, description: 'Attempts that failed.' },
  },
  required: ['from', 'stepSeconds', ...activityNames],
};

const activitySchema = named('Activity', {
  description: 'What the process that answers did in the last day, in the memory of it and of its workers.',
  type: 'object',
  properties: {
    hour: { ...seriesSchema, description: `${seriesSchema.description} 60 of a minute.` },
    day: { ...seriesSchema, description: `${seriesSchema.description} 96 of a quarter of an hour.` },
  },
  required: ['hour', 'day'],
});

const seriesExample = {
  ...{ from: '2026-08-01T09:30:00.000Z', stepSeconds: 60, requests: [120, 98], clientErrors: [2, 0] },
  ...{ serverErrors: [0, 0], writes: [14, 11], delivered: [9, 8], undelivered: [1, 0] },
};

/** `/meta/activity` (§4.21.10): what the process did, minute by minute. */
function activityResource({ base, limits, metrics }: ProgramOptions): Resource {
  const shown = (series: ActivitySeries) => ({ ...series, from: new Date(series.from).toISOString() });
  return actionResource(
    {
      ...{ method: 'GET', path: `${base}/meta/activity`, tag: serviceTag, name: 'MetaActivity' },
      id: 'readActivity',
      summary: 'Read what the program did in the last day',
      description:
        'Administrators only. Requests, errors, writes and deliveries of the process that answers, with those of all its workers; a restart begins anew.',
      output: { schema: activitySchema, example: { hour: seriesExample, day: seriesExample } },
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: async () => {
        const { hour, day } = await metrics.activity();
        return { content: { hour: shown(hour), day: shown(day) } };
      },
    },
    limits,
  );
}

const scraper = authenticated({ id: 'metrics', scopes: [] });

const scraping: Known = {
  ...{ principal: scraper, scheme: 'token', session: null, key: null, confirmed: undefined },
  onEnd: () => () => undefined,
};

/** Compares digests, which have one length, in constant time. */
function identifyScraper(token: string): NonNullable<Resource['identify']> {
  const expected = hash('sha256', token, 'buffer');
  return (request, query, authenticate) => {
    const { authorization } = request.fields;
    const credentials = authorization === undefined ? undefined : parseCredentials(authorization);
    const given = credentials?.scheme === 'bearer' ? credentials.token68 : undefined;
    const isToken = given !== undefined && timingSafeEqual(hash('sha256', given, 'buffer'), expected);
    return isToken ? scraping : authenticate(request, query);
  };
}

/** Proxies grant all fields of a response 4 KiB. A longer query is left out: pages need none. */
const repeatedQueryCharactersMax = 1_500;

/** The path of a page with a slash at its end, as people type it. The Location is relative, so that a proxy may add a prefix. */
function slashed({ path, mediaType, cacheControl }: Asset): Resource {
  const page = `..${path.slice(path.lastIndexOf('/'))}`;
  return documentResource({
    ...{ path: `${path}/`, mediaType, cacheControl },
    read: ({ query }) => {
      const isRepeated = query !== undefined && query.length <= repeatedQueryCharactersMax;
      return { elsewhere: isRepeated ? `${page}?${query}` : page };
    },
  });
}

/** Assets do not change while the program runs: each is read and hashed at its first request. */
function readOnce(asset: Asset): () => Promise<Document> {
  let read: Promise<Document> | undefined;
  return () => {
    read ??= (async () => {
      const content = await asset.read();
      return { content, fields: asset.fields, tag: contentTag(content) };
    })();
    return read;
  };
}

function valueIn(query: string | undefined, name: string): string | undefined {
  const pair = query?.split('&').find((part) => part.startsWith(`${name}=`));
  return pair?.slice(name.length + 1);
}

// `GET /`: a browser goes to the dashboard, or to the documentation where there is none (§4.12.1); a program gets the links of the API. The
// resource has no credential and no limit, like the other documents of the program.

const offers = ['application/json', 'text/html'];

function entranceResource({ base, root, hasDashboard }: ProgramOptions): Resource {
  const links = {
    api: base,
    openapi: `${root}/openapi.json`,
    docs: `${root}/docs`,
    health: `${root}/health/ready`,
    ...(hasDashboard ? { dashboard: `${root}/dashboard` } : {}),
  };
  const page = links.dashboard ?? links.docs;
  return documentResource({
    documentation: {
      name: 'Entrance',
      read: {
        id: 'readEntrance',
        summary: 'Read the links of the program',
        description: 'A client that prefers text/html gets a 303 redirect to the dashboard.',
        gives: {
          representation: json({
            type: 'object',
            properties: Object.fromEntries(Object.keys(links).map((name) => [name, { type: 'string' }])),
            required: Object.keys(links),
          }),
        },
      },
    },
    path: '/',
    mediaType: 'application/json',
    offers,
    cacheControl: 'no-cache',
    read: ({ request }) => {
      const { accept } = request.fields;
      return accept !== undefined && preferredMediaType(accept, offers) === 'text/html'
        ? { elsewhere: page }
        : { content: JSON.stringify(links) };
    },
  });
}

// `/health/live`: the process responds. `/health/ready`: it can serve requests; 503 while the store is unavailable or the server drains.

const healthSchema = named('Health', {
  type: 'object',
  properties: {
    status: { enum: ['live', 'ready'] },
    detail: {
      type: 'string',
      description: 'What an operator should look at although the process serves requests; absent if nothing.',
    },
  },
  required: ['status'],
});

/** A phase of the program's life: requests are served in all of them, and a load balancer should send them in one. */
export type Phase = 'starting' | 'serving' | 'draining';

type Life = {
  readonly phase: () => Phase;
  /** The start has ended. */
  serve(): void;
  drain(): void;
};

export function createLife(): Life {
  let phase: Phase = 'starting';
  return {
    phase: () => phase,
    serve: () => {
      if (phase === 'starting') phase = 'serving';
    },
    drain: () => {
      phase = 'draining';
    },
  };
}

type Health = {
  readonly store: Store;
  readonly phase: () => Phase;
  readonly program: {
    /** Between this process's clock and another's, in words. */
    readonly clockDifference: () => string | undefined;
  };
};

function healthResources({ store, phase, program }: Health): readonly Resource[] {
  const common = { mediaType: 'application/json', cacheControl: 'no-store', stable: false, inReserve: true };
  return [
    documentResource({
      ...common,
      documentation: {
        name: 'Live',
        read: {
          id: 'checkLive',
          summary: 'Check that the process responds',
          gives: { representation: json(healthSchema, { status: 'live' }) },
        },
      },
      path: '/health/live',
      read: () => ({ content: '{"status":"live"}' }),
    }),
    documentResource({
      ...common,
      documentation: {
        name: 'Ready',
        read: {
          id: 'checkReady',
          summary: 'Check that the process can serve requests',
          description:
            '503 until the start has ended, while the store takes no writes, and while the server drains.',
          gives: { representation: json(healthSchema, { status: 'ready' }) },
        },
      },
      path: '/health/ready',
      read: async () => {
        // What is left of the start may still fail, and end the program.
        if (phase() === 'starting') throw new StoreUnavailable('starting', { retryAfterSeconds: 1 });
        if (phase() === 'draining') throw new StoreUnavailable('draining', { retryAfterSeconds: 5 });
        await store.ping();
        const difference = program.clockDifference();
        const detail = difference && `another process on the same store has ${difference}`;
        return { content: JSON.stringify({ status: 'ready', detail }) };
      },
    }),
  ];
}
