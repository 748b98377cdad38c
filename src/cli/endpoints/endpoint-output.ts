/** A webhook endpoint as the server shows it, for people and for programs. A new secret is alone on stdout, for `SECRET=$(...)`. */
import type { Endpoint } from '../../model/endpoint.ts';
import { labelledLines } from '../labelled-lines.ts';
import { printable, tableText } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type ShownSecret = Endpoint & { readonly secret: string };

export function tellEndpoint(terminal: Terminal, endpoint: Endpoint, json: boolean): void {
  terminal.out(json ? JSON.stringify(endpoint, undefined, 2) : endpointText(endpoint));
}

export function tellNewSecret(terminal: Terminal, endpoint: ShownSecret, json: boolean): void {
  if (json) {
    terminal.out(JSON.stringify(endpoint, undefined, 2));
    return;
  }
  terminal.out(endpoint.secret);
  const { id, url, scheme, events } = endpoint;
  terminal.err(`comity: ${id}: ${printable(events.join(', '))} to ${printable(url)}, signed as ${scheme}`);
  terminal.err('comity: the secret is shown this once; give it to the receiver now');
}

function endpointText(endpoint: Endpoint): string {
  const { id, url, description, events, scheme, mode, tenant, headers = {} } = endpoint;
  return labelledLines([
    ['id', id],
    ['url', url],
    ['description', description],
    ['events', events.join(', ')],
    ['scheme', mode === undefined ? scheme : `${scheme}, ${mode}`],
    ['status', stateOf(endpoint)],
    ['tenant', tenant],
    ...Object.entries(headers).map(([name, value]) => ['header', `${name}: ${value}`] as const),
    ['in flight', endpoint.maxInFlight === undefined ? undefined : `at most ${endpoint.maxInFlight}`],
    ['rate', endpoint.ratePerSecond === undefined ? undefined : `at most ${endpoint.ratePerSecond}/s`],
    ['created', endpoint.createdAt],
    ['changed', endpoint.updatedAt],
  ]);
}

export function endpointsText(endpoints: readonly Endpoint[]): string {
  const rows = endpoints.map((endpoint) => [
    ...[endpoint.id, stateOf(endpoint), endpoint.scheme, endpoint.tenant ?? '', endpoint.events.join(', ')],
    endpoint.url,
  ]);
  return tableText([['ID', 'STATUS', 'SCHEME', 'TENANT', 'EVENTS', 'URL'], ...rows]);
}

/** `disabled (failing)`: by the sender, and why. */
function stateOf({ status, disabledReason }: Endpoint): string {
  return disabledReason === undefined ? status : `${status} (${disabledReason})`;
}
