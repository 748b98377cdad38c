/**
 * Resources about the program itself: health, metrics, the OpenAPI document and its pages. Only the metrics need a
 * credential.
 */

import { preferredMediaType } from '../../http/syntax/accept.ts';
import { json } from '../../kernel/documentation.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import { isAdministrator } from '../../model/principal.ts';
import { contentTag, type Document, documentResource } from './document.ts';
import { type HealthOptions, healthResources } from './health.ts';

export type Asset = {
  readonly path: string;
  readonly mediaType: string;
  readonly cacheControl: string;
  readonly fields: readonly string[];
  readonly read: () => Promise<string | Uint8Array> | string | Uint8Array;
};

export type ProgramOptions = HealthOptions & {
  readonly metrics: { readonly contentType: string; render(): Promise<string> };
  /** The OpenAPI document of a version, as JSON in UTF-8; undefined: there is no such version. */
  readonly openApi: (
    version: string | undefined,
  ) => Promise<{ readonly content: Uint8Array; readonly tag: string }> | undefined;
  readonly assets: readonly Asset[];
  readonly base: string;
  readonly hasDashboard: boolean;
};

export function programResources(options: ProgramOptions): readonly Resource[] {
  const { metrics, openApi } = options;
  return [
    entranceResource(options.base, options.hasDashboard),
    ...healthResources(options),
    documentResource({
      documentation: {
        name: 'Metrics',
        noun: 'metrics',
        read: {
          id: 'readMetrics',
          summary: 'Read metrics in the Prometheus text format',
          description: 'Administrators only.',
          gives: { representation: { 'text/plain': { schema: { type: 'string' } } } },
        },
      },
      path: '/metrics',
      mediaType: metrics.contentType,
      cacheControl: 'no-store',
      stable: false,
      permission: (principal) => (isAdministrator(principal) ? 'granted' : 'denied'),
      read: async () => ({ content: await metrics.render() }),
    }),
    documentResource({
      documentation: {
        name: 'OpenApi',
        noun: 'this document',
        read: {
          id: 'readOpenApi',
          summary: 'Read this document',
          parameters: [
            {
              name: 'version',
              in: 'query',
              description: 'Version of the OpenAPI Specification: 3.1 for tools that do not know 3.2 yet.',
              schema: { type: 'string', enum: ['3.2', '3.1'], default: '3.2' },
            },
          ],
          gives: { representation: json({ type: 'object' }) },
          codes: ['query_parameter_invalid'],
        },
      },
      path: '/openapi.json',
      mediaType: 'application/json',
      cacheControl: 'no-cache',
      read: (ask: Ask) => {
        const version = versionOf(ask.query);
        return openApi(version) ?? { refused: `version must be 3.2 or 3.1, not ${version}` };
      },
    }),
    ...options.assets.map((asset) => documentResource({ ...asset, read: readOnce(asset) })),
    ...options.assets.filter(({ mediaType }) => mediaType.startsWith('text/html')).map(slashed),
  ];
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

function versionOf(query: string | undefined): string | undefined {
  const pair = query?.split('&').find((part) => part.startsWith('version='));
  return pair?.slice('version='.length);
}

// `GET /`: a browser goes to the dashboard, or to the documentation where there is none (§4.12.1); a program gets the links of the API. The
// resource has no credential and no limit, like the other documents of the program.

const offers = ['application/json', 'text/html'];

/** @param base of the API, such as `/api/v1` */
function entranceResource(base: string, hasDashboard: boolean): Resource {
  const links = {
    api: base,
    openapi: '/openapi.json',
    docs: '/docs',
    health: '/health/ready',
    ...(hasDashboard ? { dashboard: '/dashboard' } : {}),
  };
  const page = links.dashboard ?? links.docs;
  return documentResource({
    documentation: {
      name: 'Entrance',
      noun: 'the entrance',
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
