/**
 * Which ports of public addresses may be dialled (§6.8): the ranges of the setting, less the ports that the Fetch standard blocks because a
 * server of another protocol could take a request for commands (Fetch, "bad port"). State of the list: 2025.
 */

export type PortRange = { readonly first: number; readonly last: number };

/** https://fetch.spec.whatwg.org/#bad-port */
export const blockedPorts: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103],
  ...[
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
  ],
  ...[515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723],
  ...[2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
]);

/** Reads the parts of a list such as `443` and `8000-8999`, which the setting has checked. */
export function readPortRanges(parts: readonly string[]): readonly PortRange[] {
  return parts.map((part) => {
    const [first = '', last = first] = part.split('-');
    return { first: Number(first), last: Number(last) };
  });
}

/** Whether the port is in one of the ranges and not blocked. */
export function permitsPort(ranges: readonly PortRange[], port: number): boolean {
  return !blockedPorts.has(port) && ranges.some(({ first, last }) => first <= port && port <= last);
}
