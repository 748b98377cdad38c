/** The presets by name. Each is data in a file of its own. */
import type { SenderRule } from './sender-rule.ts';

export const presetNames = [
  'timestamped',
  'plain',
  'standard',
  'hmac',
  'stripe',
  'github',
  'svix',
  'slack',
  'shopify',
  'twilio',
  'gitlab',
] as const;
export type PresetName = (typeof presetNames)[number];

export const presets: Readonly<Record<PresetName, SenderRule>> = undefined as never;
