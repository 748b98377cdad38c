/**
 * A resource whose representation the program generates: health, metrics, the OpenAPI document, pages. Readable by
 * every caller unless `permission` says otherwise. The kernel serves it like any other resource, with validators, HEAD
 * and OPTIONS. No rate limit applies: monitors send many requests, and the responses are cheap.
 */
import { hash } from 'node:crypto';
import type { OperationDocumentation, PathDocumentation, Tag } from '../../kernel/documentation.ts';
import type { Ask, Operation, Proposal, Resource, Standing } from '../../kernel/resource.ts';
import type { Permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { MaybePromise } from '../../store/store.ts';

export type Document =
  | {
      readonly content: string | Uint8Array;
      readonly fields?: readonly string[];
      /** A known tag; absent: computed from the content. */
      readonly tag?: string;
    }
  /** The query string requests something that does not exist. */
  | { readonly refused: string }
  /** The representation that the caller accepts is at another URI (§4.12). */
  | { readonly elsewhere: string };

export const serviceTag: Tag = {
  name: 'service',
  description: 'Health, metrics and this document.',
  audience: 'operator',
};

export type DocumentOptions = {
  readonly documentation?: Omit<PathDocumentation, 'tag'> & { readonly read: OperationDocumentation };
  readonly path: string;
  readonly mediaType: string;
  /** Media types that Accept may name, where they are more than `mediaType`. */
  readonly offers?: readonly string[];
  readonly cacheControl: string;
  readonly read: (ask: Ask) => MaybePromise<Document>;
  /** False if every read returns different content; it then has no entity tag. */
  readonly stable?: boolean;
  readonly permission?: (principal: Principal) => Permission;
  /** See `Resource`. */
  readonly identify?: Resource['identify'];
  /** See `Resource`. */
  readonly inReserve?: boolean;
};

const open: Standing = { exists: true, visible: true, permitted: true };

/** 132 bits of a digest: equal content has the same tag in every process. */
export function contentTag(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url').slice(0, 22);
}

export function documentResource(options: DocumentOptions): Resource {
  const { mediaType, cacheControl, documentation } = options;
  type Read = Proposal & {
    readonly content: string | Uint8Array;
    readonly fields: readonly string[];
    readonly tag: string | null;
  };
  const operation: Operation<Standing, never, Read> = {
    ...(documentation === undefined ? {} : { documentation: documentation.read }),
    permission: options.permission ?? (() => 'granted'),
    standing: () => open,
    propose: async (ask) => {
      const document = await options.read(ask);
      if ('refused' in document) {
        const problem = { code: 'query_parameter_invalid', message: document.refused } as const;
        return { problem, content: '', fields: [], tag: null };
      }
      if ('elsewhere' in document) return { problem: null, ...document, content: '', fields: [], tag: null };
      const { content, fields = [] } = document;
      const tag = options.stable === false ? null : (document.tag ?? contentTag(content));
      return { problem: null, content, fields, tag };
    },
    validators: (_ask, _standing, proposal) => ({
      tag: proposal?.tag ?? null,
      modifiedAt: null,
      cacheControl,
    }),
    represent: (_ask, _standing, proposal) => ({
      content: proposal?.content ?? '',
      mediaType,
      validators: { tag: proposal?.tag ?? null, modifiedAt: null },
      cacheControl,
      fields: proposal?.fields ?? [],
    }),
  };
  return {
    pattern: options.path,
    ...(documentation === undefined ? {} : { documentation: { name: documentation.name, tag: serviceTag } }),
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: options.offers ?? [mediaType.split(';', 1)[0] ?? mediaType],
    unlimited: true,
    ...(options.identify === undefined ? {} : { identify: options.identify }),
    inReserve: options.inReserve ?? false,
  };
}
