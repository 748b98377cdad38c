/**
 * Recognises a destination that is a listener of this program, so that no event returns to the API that emitted it. A listener on the unspecified
 * address (`0.0.0.0`, `::`) is on every address of this machine. Proxies and translators outside that lead back cannot be detected.
 */
import { networkInterfaces } from 'node:os';
import { type Address, contains, isSameAddress, parseAddress, parseBlock, unmapAddress } from './address.ts';

export type OwnListener = { readonly address: string; readonly port: number };

const loopbacks = ['127.0.0.0/8', '::1'].flatMap((text) => parseBlock(text) ?? []);

export function listLocalAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((of) => (of ?? []).map(({ address }) => address));
}

/** Whether one of the listeners receives what is sent to the address and port. */
export function isOwnListener(
  { address, port }: { readonly address: Address; readonly port: number },
  listeners: readonly OwnListener[],
  localAddresses: () => readonly string[] = listLocalAddresses,
): boolean {
  const destination = unmapAddress(address);
  return listeners.some((listener) => {
    if (listener.port !== port) return false;
    const at = parseAddress(listener.address);
    if (at === undefined) return false;
    const own = unmapAddress(at);
    if (isSameAddress(own, destination)) return true;
    // A packet to the unspecified address goes to the loopback interface.
    if (isUnspecified(destination)) return isUnspecified(own) || isLoopback(own);
    return isUnspecified(own) && (isLoopback(destination) || isLocal(destination, localAddresses()));
  });
}

function isLocal(address: Address, local: readonly string[]): boolean {
  return local.some((text) => {
    const own = parseAddress(text);
    return own !== undefined && isSameAddress(unmapAddress(own), address);
  });
}

function isUnspecified({ bytes }: Address): boolean {
  return bytes.every((octet) => octet === 0);
}

function isLoopback(address: Address): boolean {
  return loopbacks.some((block) => contains(block, address));
}
