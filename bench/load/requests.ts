/**
 * Precomputed request buffers for each kind of load, and the check of the sampled answers. A benchmark that
 * measures errors is a defect: each kind states its one expected status and what a right body looks like.
 */
import { apiKey } from '../api-key.ts';
import { productFields, productId, productPrice } from '../product.ts';
import { signedRequests } from '../received/signed-requests.ts';
import type { LoadPlan } from './plan.ts';

export type SampledAnswer = { readonly head: string; readonly body: Buffer };

export type RequestSource = {
  readonly status: number;
  /** The bytes of the next request of the connection with this number. The buffer may be used again for it after its answer. */
  next(connection: number): Buffer;
  /** A fault in words, or undefined for a right answer. */
  check(answer: SampledAnswer): string | undefined;
};

const preparedMax = 32_768;
const questionsRepeated = 256;
const listLimit = 20;

/** The source for the plan's kind. `etags` maps identifiers to entity tags and is needed for `not-modified` alone. */
export function createRequestSource(plan: LoadPlan, etags: ReadonlyMap<string, string>): RequestSource {
  switch (plan.kind) {
    case 'constant':
      return repeated(200, [getRequest(plan, plan.path)], () => undefined);
    case 'read':
      return repeated(
        200,
        prepared(plan, (index) => getRequest(keyed(plan, index), `${plan.path}/${productId(index)}`)),
        checkProduct,
      );
    case 'not-modified':
      return repeated(304, conditional(plan, etags), checkEmpty);
    case 'list':
    case 'list-new':
      return repeated(
        200,
        questions(plan, (gte) => getRequest(plan, `${plan.path}?${listQuery(gte)}`)),
        checkList,
      );
    case 'query':
    case 'query-new':
      return repeated(
        200,
        questions(plan, (gte) => queryRequest(plan, gte)),
        checkList,
      );
    case 'search':
      return repeated(
        200,
        prepared(plan, (index) => getRequest(plan, `${plan.path}?q=nothing-like-${index}`)),
        checkNoItems,
      );
    case 'create':
      return createSource(plan);
    case 'change':
      return changeSource(plan);
    case 'received':
      return receivedSource(plan);
  }
}

/** Indexes spread over all rows in an order without locality. */
export function spreadIndex(step: number, rows: number): number {
  return (step * 2_654_435_761) % rows;
}

function prepared(plan: LoadPlan, make: (index: number) => Buffer): readonly Buffer[] {
  const buffers: Buffer[] = [];
  const count = Math.min(plan.rows, preparedMax);
  for (let step = 0; step < count; step += 1) buffers.push(make(spreadIndex(step, plan.rows)));
  return buffers;
}

/**
 * A few hundred lower bounds, or so many that each is out of every cache before it comes again. Then those of a run are no others', which
 * a slow server would remember from the run before.
 */
function questions(plan: LoadPlan, make: (gte: number) => Buffer): readonly Buffer[] {
  const renewed = plan.kind === 'list-new' || plan.kind === 'query-new';
  const partOfRun = plan.createFrom / 1e18;
  const count = renewed ? preparedMax : questionsRepeated;
  const buffers: Buffer[] = [];
  for (let step = 0; step < count; step += 1) {
    const gte = priceFrom(spreadIndex(step, plan.rows), plan.rows);
    buffers.push(make(renewed ? gte + step / 1e6 + partOfRun : gte));
  }
  return buffers;
}

function repeated(
  status: number,
  buffers: readonly Buffer[],
  check: (answer: SampledAnswer) => string | undefined,
): RequestSource {
  let at = 0;
  const first = buffers[0];
  if (first === undefined) throw new Error('no requests prepared');
  return {
    status,
    next: () => {
      at = at + 1 < buffers.length ? at + 1 : 0;
      return buffers[at] ?? first;
    },
    check,
  };
}

function requestHead(plan: LoadPlan, method: string, target: string): string {
  return `${method} ${target} HTTP/1.1\r\nHost: ${plan.host}:${plan.port}\r\n${plan.fieldLines}`;
}

/** @param index spread over all rows, so that the keys are spread as well */
function keyed(plan: LoadPlan, index: number): LoadPlan {
  if (plan.keys === undefined) return plan;
  return { ...plan, fieldLines: `${plan.fieldLines}X-API-Key: ${apiKey(index % plan.keys)}\r\n` };
}

function getRequest(plan: LoadPlan, target: string): Buffer {
  return Buffer.from(`${requestHead(plan, 'GET', target)}\r\n`, 'latin1');
}

function bodyRequest(plan: LoadPlan, method: string, body: string): Buffer {
  const head = requestHead(plan, method, plan.path);
  const length = Buffer.byteLength(body);
  return Buffer.from(
    `${head}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
    'utf8',
  );
}

function conditional(plan: LoadPlan, etags: ReadonlyMap<string, string>): readonly Buffer[] {
  const buffers: Buffer[] = [];
  for (const [id, etag] of etags) {
    const head = requestHead(plan, 'GET', `${plan.path}/${id}`);
    buffers.push(Buffer.from(`${head}If-None-Match: ${etag}\r\n\r\n`, 'latin1'));
  }
  return buffers;
}

/** The lowest price asked for: in the lower half of the prices, so that 20 rows always follow from 1,000 rows on. */
function priceFrom(index: number, rows: number): number {
  return productPrice(index % rows) / 2;
}

function listQuery(gte: number): string {
  return `price%5Bgte%5D=${gte}&sort=price&limit=${listLimit}`;
}

function queryRequest(plan: LoadPlan, gte: number): Buffer {
  return bodyRequest(
    plan,
    'QUERY',
    JSON.stringify({ filter: { price: { gte } }, sort: ['price'], limit: listLimit }),
  );
}

/**
 * Creates: each connection has one buffer whose sku digits are overwritten before each use. The buffer is free by
 * then, since its answer has come.
 */
function createSource(plan: LoadPlan): RequestSource {
  const template = bodyRequest(plan, 'POST', `{${productFields(0, plan.categoryId)}}`);
  const digitsAt = template.indexOf('SKU-') + 'SKU-'.length;
  const buffers = Array.from({ length: plan.connections }, () => Buffer.from(template));
  let index = plan.createFrom;
  return {
    status: 201,
    next: (connection) => {
      const buffer = buffers[connection];
      if (buffer === undefined) throw new RangeError(`no connection ${connection}`);
      index += 1;
      let left = index;
      for (let place = 11; place >= 0; place -= 1) {
        buffer[digitsAt + place] = 48 + (left % 10);
        left = Math.floor(left / 10);
      }
      return buffer;
    },
    check: checkCreated,
  };
}

/** Merge patches of the stored rows in turn; no two give the same stock. */
function changeSource(plan: LoadPlan): RequestSource {
  let step = plan.createFrom;
  return {
    status: 200,
    next: () => {
      step += 1;
      const head = requestHead(plan, 'PATCH', `${plan.path}/${productId(step % plan.rows)}`);
      const body = `{"stock":${step}}`;
      return Buffer.from(
        `${head}Content-Type: application/merge-patch+json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        'latin1',
      );
    },
    check: checkProduct,
  };
}

function receivedSource(plan: LoadPlan): RequestSource {
  if (plan.received === undefined) throw new TypeError('the plan does not say how messages are signed');
  const headOf = (fieldLines: string) => `${requestHead(plan, 'POST', plan.path)}${fieldLines}`;
  return {
    status: 204,
    next: signedRequests(plan.received, headOf, plan.connections),
    check: ({ body }) => (body.length === 0 ? undefined : 'a 204 with a body'),
  };
}

function checkProduct(answer: SampledAnswer): string | undefined {
  const value = parsed(answer.body);
  if (!isObject(value)) return 'the body of a read is no JSON object';
  if (typeof value.id !== 'string' || typeof value.price !== 'number')
    return 'the body of a read is no product';
  return hasField(answer.head, 'etag') ? undefined : 'a read without ETag';
}

function checkEmpty(answer: SampledAnswer): string | undefined {
  if (answer.body.length !== 0) return 'a 304 with a body';
  return hasField(answer.head, 'etag') ? undefined : 'a 304 without ETag';
}

function checkList(answer: SampledAnswer): string | undefined {
  const items = itemsOf(answer.body);
  if (items === undefined) return 'a list without items';
  if (items.length !== listLimit) return `a list of ${items.length} instead of ${listLimit} items`;
  let before = 0;
  for (const item of items) {
    const price = isObject(item) ? item.price : undefined;
    if (typeof price !== 'number' || price < before) return 'a list that is not in order of price';
    before = price;
  }
  return undefined;
}

function checkNoItems(answer: SampledAnswer): string | undefined {
  const items = itemsOf(answer.body);
  return items !== undefined && items.length === 0 ? undefined : 'a search that should have found nothing';
}

function checkCreated(answer: SampledAnswer): string | undefined {
  if (!hasField(answer.head, 'location')) return 'a 201 without Location';
  if (!hasField(answer.head, 'etag')) return 'a 201 without ETag';
  const value = parsed(answer.body);
  return isObject(value) && typeof value.id === 'string' ? undefined : 'a 201 whose body is no product';
}

function itemsOf(body: Buffer): readonly unknown[] | undefined {
  const value = parsed(body);
  const items = isObject(value) ? value.items : undefined;
  return Array.isArray(items) ? items : undefined;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // Bytes that are no JSON are reported by the caller as the wrong kind of body.
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Case-insensitive presence of a field in a response head. */
export function fieldValue(head: string, name: string): string | undefined {
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon === name.length && line.slice(0, colon).toLowerCase() === name)
      return line.slice(colon + 1).trim();
  }
  return undefined;
}

function hasField(head: string, name: string): boolean {
  return fieldValue(head, name) !== undefined;
}
