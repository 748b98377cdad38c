/** The lane of an endpoint: the same in every process and every version, or two processes would send for one endpoint. */

/** Enough to share out evenly among a dozen processes, few enough to stand in one row. */
export const laneCount = 64;

/** FNV-1a over the code units of the id, folded, because its low bits alone are poor. */
export function laneOf(endpointId: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < endpointId.length; at += 1) {
    hash = Math.imul(hash ^ endpointId.charCodeAt(at), 0x01000193);
  }
  hash ^= hash >>> 15;
  hash ^= hash >>> 7;
  return (hash >>> 0) % laneCount;
}
