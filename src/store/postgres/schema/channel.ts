/** The name under which processes on one schema call each other (LISTEN, NOTIFY); the server takes 63 bytes. */
import { physicalName } from './physical-name.ts';

export function channelOf(schema: string): string {
  return physicalName(`comity_${schema}`);
}
