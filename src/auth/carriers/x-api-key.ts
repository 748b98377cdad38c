/**
 * `X-API-Key: <key>` (§5.2).
 */
import type { Carrier, Credential, Unreadable } from '../credential.ts';

export const xApiKeyCarrier: Carrier = {
  mark: 'k',
  find: (fields) => fields.xApiKey,
  read: readKey,
  holdsPassword: () => false,
};

/** A place that holds a key and nothing besides. */
export function readKey(text: string): Credential | Unreadable {
  const key = text.trim();
  return key === '' ? { kind: 'unreadable', problem: 'api_key_required' } : { kind: 'key', key };
}
