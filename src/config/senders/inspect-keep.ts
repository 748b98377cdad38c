/**
 * Checks which header fields are said to be kept with a message. What proves who sent it is not kept: handlers see the kept fields, and
 * forwarding sends them on.
 */
import type { SignatureRule } from '../../webhooks/signature/signature-rule.ts';
import { kindOf } from '../inspection.ts';
import { headerNameOf, type Refuse } from './refuse.ts';

const keptMax = 64;
const credentials: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

export function inspectKeep(
  written: unknown,
  signature: SignatureRule | undefined,
  refuse: Refuse,
): readonly string[] {
  if (!Array.isArray(written)) {
    refuse(`keep must be a list of names of header fields, not ${kindOf(written)}`);
    return [];
  }
  if (written.length > keptMax) refuse(`keep may hold ${keptMax} names at most`);
  const kept = written.slice(0, keptMax).flatMap((each: unknown, at) => {
    const name = headerNameOf(each);
    if (name === undefined) refuse(`keep[${at}] must be the name of a header field`);
    else if (credentials.has(name) || (signature?.kind === 'token' && signature.header === name)) {
      refuse(`keep[${at}] is ${name}, which holds a secret and is not kept`);
    }
    return name ?? [];
  });
  return [...new Set(kept)];
}
