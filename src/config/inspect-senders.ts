/** Checks what a configuration declares of senders of webhooks, and fills in what their presets say. */
import type { DeclaredSender } from './senders.ts';

/** @param written what stands under `senders` */
export function inspectSenders(written: unknown, mistakes: string[]): ReadonlyMap<string, DeclaredSender> {
  if (written !== undefined) mistakes.push('senders are not taken yet');
  return new Map();
}
