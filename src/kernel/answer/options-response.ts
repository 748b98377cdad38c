/**
 * OPTIONS (§4.8; RFC 9110 §9.3.7): Allow, the media types that each method accepts (Accept-Post, Accept-Patch of RFC
 * 5789, Accept-Query of RFC 10008), and the size limit of §2.8. Also builds the same fields for refusals.
 */

import { knownMethods, type Response } from '../../http/message.ts';

import { formatAcceptQuery } from '../../http/syntax/accept-query.ts';
import { isAdministrator } from '../../model/principal.ts';
import { contentBytesMax } from '../message-facts.ts';
import type { Operation } from '../resource.ts';
import type { WalkContext } from '../walk-context.ts';
import { allowedOrigin, allowingFields } from './cors.ts';
import type { Ended } from './ended.ts';

/** The methods of all resources together, for what is about no resource; TRACE is added if it is enabled. */
export const serverMethods: readonly string[] = [...knownMethods].filter(
  (method) => method !== 'CONNECT' && method !== 'TRACE',
);

export function serverOptionsResponse(status: number, ended: Ended): Response {
  return { status, fields: ['Allow', methodsOfServer(ended).join(', ')], content: null };
}

function methodsOfServer(ended: Ended): readonly string[] {
  return ended.reading.facts.traceEnabled ? [...serverMethods, 'TRACE'] : serverMethods;
}

export function optionsResponse(status: number, context: WalkContext, ended: Ended): Response {
  const fields = ['Allow', allowedMethods(ended).join(', '), ...contentFields(ended, 'OPTIONS')];
  if (fields.length > 2) fields.push('Max-Content-Length', String(announcedBytesMax(context, ended)));
  return { status, fields, content: null };
}

/** One field covers all methods (§2.8): it describes the method that `Accept` describes. */
function announcedBytesMax(context: WalkContext, ended: Ended): number {
  const operations = ended.reading.route?.resource.operations;
  return contentBytesMax(operations?.get('POST') ?? operations?.get('PUT'), context.limits);
}

/**
 * The methods that the resource supports for this caller. Once the caller is known, methods that the access rules
 * always deny it are left out.
 */
export function allowedMethods(ended: Ended): readonly string[] {
  const { route, facts } = ended.reading;
  const methods: string[] = [];
  for (const [method, operation] of route?.resource.operations ?? []) {
    const known = ended.ask !== undefined && !isAdministrator(ended.principal);
    if (known && operation.permission(ended.principal) === 'denied') continue;
    methods.push(method);
    if (method === 'GET') methods.push('HEAD');
  }
  if (route !== undefined) methods.push('OPTIONS');
  if (facts.traceEnabled) methods.push('TRACE');
  return methods;
}

/** Accept-* for one method, or for all methods with OPTIONS. */
export function contentFields(ended: Ended, method: string): readonly string[] {
  const operations = ended.reading.route?.resource.operations;
  const typesOf = (name: string) =>
    method === name || method === 'OPTIONS' ? contentTypesOf(operations?.get(name)) : undefined;
  const fields: string[] = [];
  const post = typesOf('POST');
  const patch = typesOf('PATCH');
  const query = operations?.get('QUERY')?.contentTypes;
  const own =
    method === 'OPTIONS'
      ? (post ?? contentTypesOf(operations?.get('PUT')))
      : contentTypesOf(operations?.get(method));
  if (own !== undefined) fields.push('Accept', own.join(', '));
  if (post !== undefined) fields.push('Accept-Post', post.join(', '));
  if (patch !== undefined) fields.push('Accept-Patch', patch.join(', '));
  if (query !== undefined) fields.push('Accept-Query', formatAcceptQuery(query.map((type) => ({ type }))));
  return fields;
}

const anyType: readonly string[] = ['*/*'];

function contentTypesOf(operation: Operation | undefined): readonly string[] | undefined {
  return operation?.raw === true ? anyType : operation?.contentTypes;
}

/**
 * A cross-origin preflight (§4.8; Fetch, CORS preflight), answered without a credential because browsers send none. An
 * origin that is not allowed gets the response without CORS fields, which the browser treats as a refusal. For a path
 * without a resource every method is allowed: a page can read the 404 of the request itself, and not that of a preflight.
 */
export function preflightResponse(status: number, context: WalkContext, ended: Ended): Response {
  const isRouted = ended.reading.facts.routed;
  const methods = (isRouted ? allowedMethods(ended) : methodsOfServer(ended)).join(', ');
  const allowed = allowedOrigin(context.cors, ended.request.fields.origin);
  const fields = isRouted ? ['Allow', methods] : [];
  if (context.cors.enabled) {
    fields.push('Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers');
  }
  if (allowed !== undefined) {
    fields.push(
      ...allowingFields(context.cors, allowed),
      'Access-Control-Allow-Methods',
      methods,
      'Access-Control-Allow-Headers',
      context.cors.allowedFields,
      'Access-Control-Max-Age',
      String(context.cors.maxAgeSeconds),
    );
  }
  return { status, fields, content: null };
}
