/** The stored form of a random secret: with 256 random bits a slow hash would add nothing. */
import { hash } from 'node:crypto';

/** SHA-256 in base64url. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
