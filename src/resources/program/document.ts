/**
 * A resource whose representation the program itself makes: health, metrics, the OpenAPI document, pages. Readable by
 * anyone unless said otherwise, served by the same kernel as everything else, so it has validators, HEAD and OPTIONS. No rate
 * limit applies: monitors ask often, and the answers are at hand.
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
      /** Where it is known already; made of the content otherwise. */
      readonly tag?: string;
    }
  /** The query component names something that is not there. */
  | { readonly refused: string };

export const serviceTag: Tag = { name: 'service', description: 'What the program tells about itself.' };

export type DocumentOptions = {
  /** Absent: the OpenAPI document does not describe it. */
  readonly documentation?: Omit<PathDocumentation, 'tag'> & { readonly read: OperationDocumentation };
  readonly path: string;
  readonly mediaType: string;
  readonly cacheControl: string;
  readonly read: (ask: Ask) => MaybePromise<Document>;
  /** False for what is different at every read: no tag is made then. */
  readonly stable?: boolean;
  readonly permission?: (principal: Principal) => Permission;
  /** As in `Resource`. */
  readonly inReserve?: boolean;
};

const there: Standing = { exists: true, visible: true, permitted: true };

/** 132 bits of a digest: the same content has the same tag on every process. */
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
    standing: () => there,
    propose: async (ask) => {
      const document = await options.read(ask);
      if ('refused' in document) {
        const problem = { code: 'query_parameter_invalid', message: document.refused } as const;
        return { problem, content: '', fields: [], tag: null };
      }
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
    ...(documentation === undefined
      ? {}
      : { documentation: { name: documentation.name, noun: documentation.noun, tag: serviceTag } }),
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: [mediaType.split(';', 1)[0] ?? mediaType],
    unlimited: true,
    inReserve: options.inReserve ?? false,
  };
}
