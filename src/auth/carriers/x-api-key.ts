/**
 * `X-API-Key: <key>` (§5.2).
 */
import type { Carrier } from '../credential.ts';

export const xApiKeyCarrier: Carrier = (request) => {
  if (request.xApiKey === undefined) return undefined;
  const key = request.xApiKey.trim();
  return key === '' ? { kind: 'unreadable', problem: 'api_key_required' } : { kind: 'key', key };
};
