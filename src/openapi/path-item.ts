/**
 * A path with its operations. The kernel answers HEAD, OPTIONS and, if enabled, TRACE for every resource (§4.3, §4.8,
 * §4.11), so they are described here.
 */

import type { Content, Item } from '../kernel/documentation.ts';
import { type Description, type OperationSetting, operationItem } from './operation.ts';
import type { FieldName } from './response-fields.ts';
import { plainRead } from './traits.ts';

export type PathDescription = {
  readonly path: string;
  /** `Products`: suffix of the operation ids of HEAD, OPTIONS and TRACE. */
  readonly name: string;
  /** Name of the path in summaries: `the products`. */
  readonly noun: string;
  readonly description?: string;
  readonly parameters?: readonly Item[];
  readonly operations: readonly Description[];
};

export type Setting = OperationSetting & {
  readonly traceEnabled: boolean;
  /** Fields of cross-origin responses, if any origin is allowed. */
  readonly corsFields: readonly FieldName[];
};

export function pathItem(described: PathDescription, setting: Setting): Item {
  const [first] = described.operations;
  if (first === undefined) throw new Error(`the path ${described.path} has no operation`);
  const all = [...described.operations, ...kernelOperations(described, first, setting.traceEnabled)];
  const operations = all.map((operation) => {
    const constantFields = [...(operation.constantFields ?? []), ...setting.corsFields];
    const accepts = acceptFields(described.operations, operation.traits.method);
    const item = operationItem({ ...operation, accepts, constantFields }, setting);
    return [operation.traits.method.toLowerCase(), item] as const;
  });
  return {
    ...(described.description === undefined ? {} : { description: described.description }),
    ...(described.parameters === undefined ? {} : { parameters: described.parameters }),
    ...Object.fromEntries(operations),
  };
}

function kernelOperations(
  { name, noun, operations }: PathDescription,
  { tag, deprecated = false, constantFields = [] }: Description,
  traceEnabled: boolean,
): readonly Description[] {
  const found: Description[] = [];
  const get = operations.find(({ traits }) => traits.method === 'GET');
  if (get !== undefined) {
    const traits = { ...get.traits, method: 'HEAD', streams: false };
    found.push({ ...get, id: `head${name}`, summary: `Read only the header fields of ${noun}`, traits });
  }
  const traits = { ...plainRead, method: 'OPTIONS', validators: 'none' } as const;
  found.push({
    tag,
    deprecated,
    id: `options${name}`,
    summary: `List the methods of ${noun}`,
    description:
      'Requires no credential. With Origin and Access-Control-Request-Method it is a cross-origin preflight request.',
    traits,
    constantFields: [...constantFields, ...optionsFields(operations)],
  });
  if (traceEnabled) {
    found.push({
      tag,
      deprecated,
      id: `trace${name}`,
      summary: 'Echo the request as received',
      description: 'Leaves out fields that carry credentials.',
      traits: { ...traits, method: 'TRACE' },
      content: { trace: traceContent },
    });
  }
  return found;
}

const traceContent: Content = { 'message/http': { schema: { type: 'string' } } };

function optionsFields(operations: readonly Description[]): readonly FieldName[] {
  const accepts = acceptFields(operations, 'OPTIONS');
  return accepts.length === 0 ? [] : [...accepts, 'Max-Content-Length'];
}

/** Mirrors contentFields in kernel/answer/options-response.ts. */
function acceptFields(operations: readonly Description[], method: string): readonly FieldName[] {
  const takes = (name: string) =>
    (operations.find(({ traits }) => traits.method === name)?.traits.contentTypes.length ?? 0) > 0;
  const every = method === 'OPTIONS';
  const fields: FieldName[] = [];
  if (every ? takes('POST') || takes('PUT') : takes(method)) fields.push('Accept');
  if (takes('POST') && (every || method === 'POST')) fields.push('Accept-Post');
  if (takes('PATCH') && (every || method === 'PATCH')) fields.push('Accept-Patch');
  if (takes('QUERY')) fields.push('Accept-Query');
  return fields;
}
