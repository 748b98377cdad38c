/**
 * Read-only resources that show what the configuration declares, such as event types and senders: one of them, and a list. A list is paged
 * like lists of rows (collection/list-answer.ts): `limit`, `page` and `cursor`, `nextCursor`, `Link`, and a count on request. It has no
 * filters, sort keys or selection.
 *
 * A cursor names the item beside which the page begins. It is not sealed, because it holds no secret and no row moves.
 */
import type { Problem } from '../../http/problem.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { OperationDocumentation, PathDocumentation } from '../../kernel/documentation.ts';
import type { Ask, Operation, Proposal, Representation, Resource, Standing } from '../../kernel/resource.ts';
import type { Permission } from '../../model/access.ts';
import { idField } from '../../model/field.ts';
import type { Principal } from '../../model/principal.ts';
import { listLinks, varyByPreference } from '../../resources/collection/list-answer.ts';
import { contentTag } from '../../resources/program/document.ts';
import { compileForm } from '../../resources/query/form-query.ts';
import type { Asked, AskedPosition, QueryLimits, Target } from '../../resources/query/list-query.ts';
import { alteredCursor, parameterProblem } from '../../resources/query/query-faults.ts';
import { type MaybePromise, whenKnown } from '../../store/store.ts';

/** JSON text of one item, and its unique name. */
export type DeclaredItem = { readonly name: string; readonly text: string };

type Page = {
  readonly content: string;
  readonly tag: string;
  readonly fields: readonly string[];
  readonly isCounted: boolean;
};

type Asking = Proposal & { readonly page?: Page };

const cacheControl = 'private, no-cache';
const parametersMax = 16;
const cursorForm = /^(after|before)\.(.+)$/;
const parameters: ReadonlySet<string> = new Set(['limit', 'per_page', 'page', 'cursor', 'api_key']);
const listed: Target = { table: '', fields: new Map([[idField.name, idField]]), searched: false };
const standing: Standing = { exists: true, visible: true, permitted: true };

/** @param itemsFor returns all items that the caller may see, in the order of the list */
export function declaredList(
  path: string,
  permission: (principal: Principal) => Permission,
  itemsFor: (principal: Principal) => MaybePromise<readonly DeclaredItem[]>,
  limits: QueryLimits,
  documentation: PathDocumentation & { readonly list: OperationDocumentation },
): Resource {
  const { list, ...documented } = documentation;
  const operation: Operation<Standing, never, Asking> = {
    documentation: {
      paged: limits,
      representationFields: ['Link', 'X-Total-Count'],
      codes: ['query_parameter_invalid'],
      ...list,
    },
    permission,
    standing: () => standing,
    propose(ask) {
      const asked = readAsked(ask.query ?? '', limits);
      if ('problem' in asked) return { problem: asked.problem };
      return whenKnown(itemsFor(ask.principal), (items): Asking => {
        const page = pageOf(path, items, asked, ask);
        return page === undefined ? { problem: alteredCursor } : { problem: null, page };
      });
    },
    validators: (_ask, _standing, proposal) => ({
      ...validatorsOf(proposal?.page),
      cacheControl,
      fields: varyByPreference,
    }),
    represent: (_ask, _standing, proposal) => ({
      content: proposal?.page?.content ?? '',
      mediaType: 'application/json',
      validators: validatorsOf(proposal?.page),
      cacheControl,
      fields: proposal?.page?.fields ?? [],
      ...(proposal?.page?.isCounted === true ? { preferencesApplied: [['count', 'exact'] as const] } : {}),
    }),
  };
  return {
    pattern: path,
    documentation: documented,
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

function validatorsOf(page: Page | undefined): { readonly tag: string | null; readonly modifiedAt: null } {
  return { tag: page?.tag ?? null, modifiedAt: null };
}

function readAsked(query: string, limits: QueryLimits): Asked | { readonly problem: Problem } {
  const pairs = parseQueryString(query, parametersMax);
  if (pairs === undefined)
    return { problem: { code: 'query_parameter_invalid', message: 'malformed query string' } };
  const other = pairs.find(([name]) => !parameters.has(name));
  if (other !== undefined) {
    const message = 'unknown query parameter; the parameters are limit, page and cursor';
    return { problem: { code: 'query_parameter_invalid', message } };
  }
  const compiled = compileForm(pairs, listed, limits);
  return compiled.ok ? compiled.asked : { problem: parameterProblem(compiled.faults) };
}

/** @returns undefined if no item has the name in the cursor */
function pageOf(
  path: string,
  items: readonly DeclaredItem[],
  asked: Asked,
  { preferences }: Pick<Ask, 'preferences'>,
): Page | undefined {
  const from = startOf(items, asked.position, asked.limit);
  if (from === undefined) return undefined;
  const shown = items.slice(from.first, from.end);
  const [first, last] = [shown[0], shown.at(-1)];
  const nextCursor = last !== undefined && from.end < items.length ? `after.${last.name}` : null;
  const previousCursor = first !== undefined && from.first > 0 ? `before.${first.name}` : null;
  const content = `{"items":[${shown.map(({ text }) => text).join(',')}],"nextCursor":${JSON.stringify(nextCursor)}}`;
  const total = preferences.countExact ? items.length : undefined;
  const target = {
    path,
    parameters: (asked.source ?? []).map(([name, value]) => `${name}=${value}&`).join(''),
  };
  const links = listLinks(target, asked, { nextCursor, previousCursor }, total);
  return {
    content,
    tag: contentTag(content),
    fields: [...varyByPreference, ...links, ...(total === undefined ? [] : ['X-Total-Count', String(total)])],
    isCounted: total !== undefined,
  };
}

type Range = { readonly first: number; readonly end: number };

function startOf(items: readonly DeclaredItem[], position: AskedPosition, limit: number): Range | undefined {
  if (position.from === 'cursor') {
    const [, side, name] = cursorForm.exec(position.cursor) ?? [];
    const at = items.findIndex((item) => item.name === name);
    if (at < 0) return undefined;
    if (side === 'after') return { first: at + 1, end: at + 1 + limit };
    return { first: Math.max(0, at - limit), end: at };
  }
  const first =
    position.from === 'page' ? (position.page - 1) * limit : position.from === 'offset' ? position.offset : 0;
  return { first, end: first + limit };
}

export type Shown = Standing & { readonly content: string; readonly tag: string };

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
