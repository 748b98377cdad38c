/**
 * Dials the destination of a tunnel, or explains why not: the failures of the dialler as statuses, codes and error
 * types of RFC 9209 (§4.10.4, §4.10.6). It connects only to the addresses that were judged.
 */
import type { Socket } from 'node:net';
import { type Dial, isLateLookup, refusedBy } from '../egress/dial.ts';
import { codeOf, DialFailure } from '../egress/dial-failure.ts';
import type { Response } from '../http/message.ts';
import type { Admitted, Reached } from './admission.ts';
import { type ProxyCall, type ProxyError, type Refusal, refusalAnswer } from './proxy-call.ts';

export type DestinationReached =
  | { readonly ok: true; readonly socket: Socket; readonly reached: Reached }
  /** The place is released. */
  | { readonly ok: false; readonly refused: Response };

/** Connects to the admitted destination; stops early when the client leaves. */
export async function dialDestination(
  dial: Dial,
  { request, signal }: ProxyCall,
  admitted: Admitted,
): Promise<DestinationReached> {
  const { host: hostname, port } = admitted.destination;
  try {
    const { socket, address, timing } = await dial({ hostname, port, signal });
    return { ok: true, socket, reached: { address, dnsMs: timing.dnsMs, connectMs: timing.connectMs } };
  } catch (error) {
    const refusal = refusalOfFailure(error);
    if (!signal.aborted) return { ok: false, refused: admitted.refuse(refusal) };
    // No refusal: the response has no reader.
    admitted.release();
    return { ok: false, refused: refusalAnswer(refusal, request.fields.accept) };
  }
}

/** Describes a failure to dial, for the caller and for operators. */
export function refusalOfFailure(error: unknown): Refusal {
  if (!(error instanceof DialFailure)) {
    return { code: 'destination_failed', error: 'proxy_internal_error', why: String(error) };
  }
  const { message } = error;
  switch (error.kind) {
    case 'refused': {
      const refused = refusedBy(error);
      const why = refused === undefined ? message : `${refused.address}: ${refused.why}`;
      return { code: 'tunnel_address_refused', error: 'destination_ip_prohibited', details: message, why };
    }
    case 'timeout':
      return { code: 'destination_timeout', error: 'connection_timeout', details: message };
    case 'dns':
      return isLateLookup(error)
        ? { code: 'destination_timeout', error: 'dns_timeout', details: message }
        : { code: 'destination_failed', error: 'dns_error', details: message };
    case 'connect':
    case 'tls':
      return { code: 'destination_failed', error: errorTypeOf(codeOf(error.cause)), details: message };
  }
}

function errorTypeOf(code: string): ProxyError {
  switch (code) {
    case 'ECONNREFUSED':
      return 'connection_refused';
    case 'ECONNRESET':
      return 'connection_terminated';
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EADDRNOTAVAIL':
      return 'destination_ip_unroutable';
    case 'ETIMEDOUT':
      return 'connection_timeout';
    default:
      return 'destination_unavailable';
  }
}
