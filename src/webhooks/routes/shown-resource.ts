/** A single read-only resource whose representation is made from the configuration: event types, senders. */

import type { OperationDocumentation, PathDocumentation } from '../../kernel/documentation.ts';
import type { Ask, Operation, Representation, Resource, Standing } from '../../kernel/resource.ts';
import type { Permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import { contentTag } from '../../resources/program/document.ts';
import type { MaybePromise } from '../../store/store.ts';

export type Shown = Standing & { readonly content: string; readonly tag: string };

const cacheControl = 'private, no-cache';

/** The resource does not exist for this caller. */
export const missing: Shown = { exists: false, visible: false, permitted: false, content: '', tag: '' };

/** @param content JSON text */
export function shown(content: string): Shown {
  return { exists: true, visible: true, permitted: true, content, tag: contentTag(content) };
}

export function shownResource(
  pattern: string,
  permission: (principal: Principal) => Permission,
  standing: (ask: Ask) => MaybePromise<Shown>,
  documentation: PathDocumentation & { readonly read: OperationDocumentation },
): Resource {
  const { read, ...documented } = documentation;
  const operation: Operation<Shown> = {
    documentation: { mayBeMissing: true, ...read },
    permission,
    standing,
    validators: (_ask, { tag }) => ({ tag, modifiedAt: null, cacheControl }),
    represent: (_ask, { content, tag }): Representation => ({
      content,
      mediaType: 'application/json',
      validators: { tag, modifiedAt: null },
      cacheControl,
    }),
  };
  return {
    pattern,
    documentation: documented,
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}
