/**
 * Rules for an endpoint that a schema cannot express (§5.6, §6): allowed addresses, valid patterns and header fields,
 * modes of schemes, permitted tenants, and the reason for disabling, which only the sender sets.
 *
 * Unchanged fields are not checked again: an endpoint that a new address policy refuses can still be disabled.
 */
import type { Settings } from '../../../config/settings.ts';
import type { FieldError, Problem } from '../../../http/problem.ts';
import { formatJsonPointer } from '../../../http/syntax/json-pointer.ts';
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { eventPatternFault } from '../../../model/event.ts';
import { equalJson } from '../../../model/json-value.ts';
import { isAdministrator, type Principal } from '../../../model/principal.ts';
import type { NewFields, Revise } from '../../../resources/collection/write-operations.ts';
import { refuseHeaders } from '../../sent-headers.ts';
import { templateFault } from '../body-template.ts';
import type { SendingParts } from '../sending-parts.ts';
import { type EndpointSecrets, endpointsCollection, type HeaderValues } from '../sending-tables.ts';

type Fields = Omit<Endpoint, 'id' | 'createdAt' | 'updatedAt'>;

export function reviseEndpoint(
  settings: Settings,
  { refuseUrl, filters, directory }: Pick<SendingParts, 'refuseUrl' | 'filters' | 'directory'>,
): Revise {
  return ({ ask, before, fields }) => {
    const current = before === undefined ? undefined : readEndpoint(before.doc);
    const wanted = fields as Fields;
    const unwritable = (['disabledReason', 'madeBy'] as const).filter(
      (member) => wanted[member] !== undefined && wanted[member] !== current?.[member],
    );
    if (unwritable.length > 0) {
      const errors = unwritable.map((member) => ({ pointer: `/${member}`, message: 'is read-only' }));
      return { refused: { code: 'field_unpatchable', errors } };
    }
    const tenant = tenantOf(ask.principal, wanted, current);
    const errors = [
      ...faultsOf(wanted, current, settings, refuseUrl),
      ...modeFaults(wanted, current),
      ...signatureFaults(wanted, current),
      ...contentFaults(filters, wanted, current, [
        ask.principal,
        directory.get(current?.id ?? '')?.principal,
      ]),
      ...('error' in tenant ? [tenant.error] : []),
    ];
    if (errors.length > 0) {
      return {
        refused: { code: 'validation_failed', errors: errors.slice(0, settings.validationErrorsMax) },
      };
    }
    const settled = {
      ...wanted,
      mode: modeOf(wanted),
      signatures: wanted.scheme === 'standard' ? wanted.signatures : undefined,
      tenant: 'error' in tenant ? undefined : tenant.tenant,
      disabledReason: wanted.status === 'disabled' ? reasonOf(current) : undefined,
      headers: wanted.headers === undefined ? undefined : hideValues(wanted.headers),
      madeBy: current === undefined ? (ask.known?.key ?? undefined) : current.madeBy,
    };
    const hasNewSecret = Object.values(wanted.headers ?? {}).some((value) => value !== hiddenValue);
    return { fields: inOrder(settled), secret: wanted.headers, hasNewSecret };
  };
}

/** Kept while the endpoint stays disabled. An endpoint that its owner disables has none. */
function reasonOf(current: Endpoint | undefined): Endpoint['disabledReason'] {
  return current?.status === 'disabled' ? current.disabledReason : undefined;
}

function faultsOf(
  wanted: Fields,
  current: Endpoint | undefined,
  settings: Settings,
  refuseUrl: SendingParts['refuseUrl'],
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (wanted.url !== current?.url) {
    const message = refuseUrl(wanted.url);
    if (message !== undefined) errors.push({ pointer: '/url', message });
  }
  for (const [index, pattern] of wanted.events.entries()) {
    const fault = current?.events.includes(pattern) ? undefined : eventPatternFault(pattern);
    if (fault !== undefined) errors.push({ pointer: `/events/${index}`, message: `${fault}` });
  }
  const { template } = wanted;
  const fault =
    template === undefined || template === current?.template ? undefined : templateFault(template);
  if (fault !== undefined) errors.push({ pointer: '/template', message: fault });
  return [...errors, ...headerFaults(wanted, current, settings)];
}

/** Checks each field by itself first, to locate the fault; faults of their combination are reported for all. */
function headerFaults(
  { headers }: Fields,
  current: Endpoint | undefined,
  { webhookHeadersMax: headersMax, webhookHeaderCharactersMax: valueCharactersMax }: Settings,
): readonly FieldError[] {
  if (headers === undefined || JSON.stringify(headers) === JSON.stringify(current?.headers)) return [];
  const bounds = { headersMax, valueCharactersMax };
  const [unknown] = namesWithoutValue(headers, current?.headers);
  if (unknown !== undefined) {
    const pointer = formatJsonPointer(['headers', unknown]);
    return [
      { pointer, message: `must not be ${hiddenValue}, which keeps the stored value: no value is stored` },
    ];
  }
  const message = refuseHeaders(headers, bounds);
  if (message === undefined) return [];
  const errors = Object.entries(headers).flatMap(([name, value]) => {
    const alone = refuseHeaders({ [name]: value }, { ...bounds, headersMax: 1 });
    return alone === undefined ? [] : [{ pointer: formatJsonPointer(['headers', name]), message: alone }];
  });
  return errors.length > 0 ? errors : [{ pointer: '/headers', message }];
}

/** @param principals who asks, and whose rights the endpoint has: neither may learn of hidden members what is delivered */
function contentFaults(
  filters: SendingParts['filters'],
  wanted: Fields,
  current: Endpoint | undefined,
  principals: readonly (Principal | undefined)[],
): readonly FieldError[] {
  const checked = ({ events, where, orderBy }: Fields) => [events, where, orderBy];
  if (current !== undefined && equalJson(checked(wanted), checked(current))) return [];
  return filters.faults(
    wanted,
    principals.filter((principal) => principal !== undefined),
  );
}

/** A mode that an earlier scheme had is dropped silently; only a newly requested one is a fault. */
function modeFaults({ scheme, mode }: Fields, current: Endpoint | undefined): readonly FieldError[] {
  if (scheme === 'timestamped' || mode === undefined || mode === current?.mode) return [];
  return [{ pointer: '/mode', message: 'requires the scheme timestamped' }];
}

function modeOf({ scheme, mode }: Fields): Endpoint['mode'] {
  return scheme === 'timestamped' ? (mode ?? 'live') : undefined;
}

/**
 * `v1` is required, because a `v1a` signature does not prove for whom a message is. Versions that an earlier scheme had
 * are dropped silently.
 */
function signatureFaults(
  { scheme, signatures }: Fields,
  current: Endpoint | undefined,
): readonly FieldError[] {
  if (signatures === undefined) return [];
  if (scheme !== 'standard') {
    return signatures.join() === current?.signatures?.join()
      ? []
      : [{ pointer: '/signatures', message: 'requires the scheme standard' }];
  }
  return signatures.includes('v1') ? [] : [{ pointer: '/signatures', message: 'must contain v1' }];
}

/** Members of a tenant create endpoints for it; callers without a tenant, and administrators, for any. */
function tenantOf(
  principal: Principal,
  { tenant }: Fields,
  current: Endpoint | undefined,
): { readonly tenant: string | undefined } | { readonly error: FieldError } {
  const own = principal.kind === 'authenticated' ? principal.tenant : null;
  if (own === null || isAdministrator(principal)) return { tenant };
  if (tenant === undefined || tenant === own) return { tenant: own };
  if (tenant === current?.tenant) return { tenant };
  return { error: { pointer: '/tenant', message: 'must be your own tenant' } };
}

/** In the order of the schema, without absent ones. */
function inOrder(settled: Readonly<Record<string, unknown>>): NewFields {
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(endpointsCollection.schema.properties)) {
    if (settled[name] !== undefined) fields[name] = settled[name];
  }
  return fields;
}

/** The refusal of requests to send to a disabled endpoint. */
export const disabledProblem: Problem = {
  code: 'endpoint_unavailable',
  message: 'the endpoint is disabled; set its status to enabled first',
};

/*
 * The header fields that an endpoint adds to its deliveries. Their values are often credentials, so a representation
 * shows a mask for each value, and the values are stored with the endpoint's encrypted secrets. A mask in a PUT or a
 * patch keeps the value.
 */

/** The mask of every value; therefore invalid as a value. */
export const hiddenValue = '********';

export type Headers = Readonly<Record<string, string>>;

/** Returns the header fields as served. */
export function hideValues(headers: Headers): Headers {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, hiddenValue]));
}

/** Returns the names whose value is the mask although the endpoint has no value to keep. */
function namesWithoutValue(headers: Headers, before: Headers | undefined): readonly string[] {
  return Object.entries(headers)
    .filter(([name, value]) => value === hiddenValue && !Object.hasOwn(before ?? {}, name))
    .map(([name]) => name);
}

/**
 * Returns the secrets of an endpoint after a change of its header fields or URL; the same object if nothing changed.
 */
export function withHeaders(
  secrets: EndpointSecrets,
  headers: Headers | undefined,
  url: string,
): EndpointSecrets {
  const before = secrets.headers;
  const { headers: _before, ...others } = secrets;
  if (headers === undefined || Object.keys(headers).length === 0)
    return before === undefined ? secrets : others;
  const entries = Object.entries(headers).flatMap(([name, value]) => {
    const kept = value === hiddenValue ? before?.values[name] : value;
    return kept === undefined ? [] : [[name, kept] as const];
  });
  const after: HeaderValues = { url, values: Object.fromEntries(entries) };
  return JSON.stringify(after) === JSON.stringify(before) ? secrets : { ...others, headers: after };
}
