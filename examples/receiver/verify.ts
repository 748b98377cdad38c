/** What came, by its headers: which scheme it is signed by (§5.6), what makes a duplicate known (§6.3), and whether the signature is good. */
import type { IncomingHttpHeaders } from 'node:http';
import { verifyPlain, verifyStandard, verifyTimestamped } from 'comity/webhooks';

export const schemes = ['standard', 'timestamped', 'plain'] as const;
export type Scheme = (typeof schemes)[number];

/** `unchecked`: there is no secret to verify with. What else is no `verified` says why not. */
export type Verdict =
  | 'verified'
  | 'unchecked'
  | 'missing'
  | 'malformed'
  | 'no-match'
  | 'unexpected'
  | 'stale'
  | 'ahead'
  | 'other-scheme';

export type Facts = {
  readonly scheme: Scheme | null;
  readonly id: string | null;
  readonly type: string | null;
};

export function schemeOf(headers: IncomingHttpHeaders, body: Buffer): Facts {
  const event = eventIn(body);
  if (headers['webhook-id'] !== undefined) {
    return { scheme: 'standard', id: textOf(headers['webhook-id']), type: textOf(event.type) };
  }
  if (headers['service-signature'] !== undefined) {
    return { scheme: 'timestamped', id: textOf(event.id), type: textOf(event.type) };
  }
  if (headers['x-hub-signature-256'] !== undefined) {
    const type = textOf(headers['x-service-event']) ?? textOf(event.type);
    return { scheme: 'plain', id: textOf(headers['x-service-delivery']), type };
  }
  return { scheme: null, id: null, type: null };
}

/** @param body the octets as they came */
export async function verify(
  headers: IncomingHttpHeaders,
  body: Buffer,
  { scheme, secrets }: { readonly scheme: Scheme | undefined; readonly secrets: readonly string[] },
): Promise<Verdict> {
  const came = schemeOf(headers, body).scheme;
  if (scheme !== undefined && came !== null && came !== scheme) return 'other-scheme';
  if (secrets.length === 0) return 'unchecked';
  if (came === null) return 'missing';
  const outcome = await verifiers[came](headers, body, secrets);
  return outcome.ok ? 'verified' : outcome.reason;
}

const verifiers = {
  standard: (headers: IncomingHttpHeaders, body: Buffer, secrets: readonly string[]) =>
    verifyStandard({
      body,
      id: textOf(headers['webhook-id']),
      timestamp: textOf(headers['webhook-timestamp']),
      signature: textOf(headers['webhook-signature']),
      secrets,
    }),
  timestamped: (headers: IncomingHttpHeaders, body: Buffer, secrets: readonly string[]) =>
    verifyTimestamped({ body, header: textOf(headers['service-signature']), secrets }),
  plain: (headers: IncomingHttpHeaders, body: Buffer, secrets: readonly string[]) =>
    verifyPlain({ body, header: textOf(headers['x-hub-signature-256']), secrets }),
};

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Looked into for the log alone: what is no JSON is verified all the same. */
function eventIn(body: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
