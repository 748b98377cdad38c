/** The presets by name. Each is data in a file of its own. */
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { hmac } from './hmac.ts';
import { plain } from './plain.ts';
import type { SenderRule } from './sender-rule.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standard } from './standard.ts';
import { stripe } from './stripe.ts';
import { svix } from './svix.ts';
import { timestamped } from './timestamped.ts';
import { twilio } from './twilio.ts';

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

export const presets: Readonly<Record<PresetName, SenderRule>> = {
  timestamped,
  plain,
  standard,
  hmac,
  stripe,
  github,
  svix,
  slack,
  shopify,
  twilio,
  gitlab,
};
