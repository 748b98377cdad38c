/** What is kept of a secret that was drawn at random: it has 256 bits, so a slow hash would add nothing. */
import { hash } from 'node:crypto';

/** SHA-256 in base64url. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
