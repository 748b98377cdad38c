/** The sender of received messages: a preset by name, a preset with changed parts, or a custom rule. */
import { type PresetName, presetNames, presets, type SenderRule } from '../presets.ts';
import type { HmacRule, SignatureRule, TokenRule } from '../signature/signature-rule.ts';

export type Sender = PresetName | SenderRule | AdjustedPreset;

export type AdjustedPreset = {
  readonly preset: PresetName;
  /** Parts of the preset's signature, or a whole one. */
  readonly signature?: Partial<HmacRule> | TokenRule | undefined;
  /** Greatest difference of the signed time from now, in seconds; 0: any time. */
  readonly toleranceSeconds?: number | undefined;
  readonly dedupe?: SenderRule['dedupe'] | undefined;
  readonly type?: SenderRule['type'] | undefined;
  readonly challenge?: SenderRule['challenge'] | undefined;
  readonly keep?: SenderRule['keep'] | undefined;
};

/** @throws TypeError for neither a preset nor a rule */
export function ruleOf(sender: Sender): SenderRule {
  if (typeof sender === 'string') return presetOf(sender);
  if ('preset' in sender) return adjusted(presetOf(sender.preset), sender);
  if (typeof sender !== 'object' || sender === null || typeof sender.signature !== 'object') {
    throw new TypeError(`sender must be a rule or a preset; the presets are ${presetNames.join(', ')}`);
  }
  return sender;
}

/** Returns the default name of a sender. */
export function nameOf(sender: Sender): string {
  if (typeof sender === 'string') return sender;
  return 'preset' in sender ? sender.preset : 'sender';
}

function presetOf(name: string): SenderRule {
  const known = presetNames.find((each) => each === name);
  if (known === undefined) throw new TypeError(`unknown preset; the presets are ${presetNames.join(', ')}`);
  return presets[known];
}

function adjusted(preset: SenderRule, adjustment: AdjustedPreset): SenderRule {
  return {
    signature: adjustedSignature(preset.signature, adjustment),
    dedupe: adjustment.dedupe ?? preset.dedupe,
    type: adjustment.type ?? preset.type,
    challenge: adjustment.challenge ?? preset.challenge,
    keep: adjustment.keep ?? preset.keep,
  };
}

function adjustedSignature(preset: SignatureRule, adjustment: AdjustedPreset): SignatureRule {
  const { signature = {}, toleranceSeconds } = adjustment;
  if (signature.kind === 'token') return signature;
  const tolerance = toleranceSeconds === undefined ? {} : { toleranceSeconds };
  if (preset.kind === 'hmac') return { ...preset, ...signature, ...tolerance };
  if (signature.kind === undefined && toleranceSeconds === undefined) return preset;
  throw new TypeError(
    'the preset uses a token, so the members of a signature have no effect: pass a rule instead',
  );
}
