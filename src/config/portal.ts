/**
 * Checks `portal` of a configuration: the name and the colour of the consumers' portal, and the sites whose pages may frame it (§5.10).
 * The colour is the ground of white text, and text on white in light mode, so it must contrast with white (WCAG 2.2, Contrast (Minimum)).
 */
import { Type } from 'typebox';
import { kindOf } from './inspection.ts';
import { inspectShape, listInParts, type Reporter, textThat, unshaped } from './shape.ts';

export type PortalDeclaration = {
  /** Name of your product, above the portal. Default: `title`. */
  readonly name?: string;
  /** Colour of buttons and links, `#rrggbb`. Its contrast with white must be 4.5:1 or more. */
  readonly color?: string;
  /** Origins of the pages that may show the portal in a frame, such as `https://app.shop.example`. Default: none. */
  readonly frameAncestors?: readonly string[];
};

export type Portal = {
  /** Undefined: the title of the configuration. */
  readonly name: string | undefined;
  readonly color: string | undefined;
  readonly frameAncestors: readonly string[];
};

const nameCharactersMax = 100;
const ancestorsMax = 32;
const colorForm = /^#[0-9a-f]{6}$/i;
/** WCAG 2.2, Contrast (Minimum), for text of any size. */
const contrastMin = 4.5;

const portalShape = Type.Object({
  name: Type.Optional(
    textThat((name) => name.trim() !== '' && name.length <= nameCharactersMax, {
      must: `must be a text of 1 to ${nameCharactersMax} characters`,
    }),
  ),
  ...unshaped('color'),
  frameAncestors: Type.Optional(
    listInParts(Type.Unknown(), {
      maxItems: ancestorsMax,
      must: 'must be a list of origins',
      holds: 'origins',
    }),
  ),
});

/** @param mistakes receives a sentence for each mistake; the result is then unusable */
export function inspectPortal(written: unknown, mistakes: string[]): Portal {
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  const sound = written === undefined ? {} : inspectShape(portalShape, written, 'portal', report);
  const { name, color, frameAncestors = [] } = sound ?? {};
  const fault = color === undefined ? undefined : colorFault(color);
  if (fault !== undefined) report(`portal.color ${fault}`);
  for (const [at, origin] of frameAncestors.entries()) {
    const fault = originFault(origin);
    if (fault !== undefined) report(`portal.frameAncestors[${at}] ${fault}`);
  }
  return {
    name,
    color: typeof color === 'string' ? color.toLowerCase() : undefined,
    frameAncestors: frameAncestors.filter((origin) => typeof origin === 'string'),
  };
}

function colorFault(color: unknown): string | undefined {
  if (typeof color !== 'string' || !colorForm.test(color)) {
    const shown = typeof color === 'string' ? JSON.stringify(color) : kindOf(color);
    return `must be a colour such as "#0b5c8a", not ${shown}`;
  }
  const contrast = contrastWithWhite(channelsOf(color));
  if (contrast >= contrastMin) return undefined;
  // Rounded down: 4.49 must not read as 4.5.
  const shown = Math.floor(contrast * 10) / 10;
  return `${color} has a contrast of ${shown}:1 with white, and text needs ${contrastMin}:1; ${darkened(color)} has it`;
}

type Channels = readonly [red: number, green: number, blue: number];

function channelsOf(color: string): Channels {
  const at = (from: number) => Number.parseInt(color.slice(from, from + 2), 16);
  return [at(1), at(3), at(5)];
}

/** WCAG 2.2, "relative luminance" and "contrast ratio". */
function contrastWithWhite(channels: Channels): number {
  const [red, green, blue] = channels.map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as unknown as Channels;
  return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
}

/** The lightest colour of the same hue that has the contrast. */
function darkened(color: string): string {
  const channels = channelsOf(color);
  for (let part = 99; part > 0; part -= 1) {
    const darker = channels.map((channel) => Math.floor((channel * part) / 100)) as unknown as Channels;
    if (contrastWithWhite(darker) >= contrastMin) {
      return `#${darker.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
    }
  }
  return '#000000';
}

const webProtocol = /^https?:$/;
const loopbackName = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Only what is an origin letter by letter goes into the field: nothing in it can end the directive. */
function originFault(origin: unknown): string | undefined {
  const wanted = 'must be an origin such as "https://app.shop.example"';
  if (typeof origin !== 'string') return `${wanted}, not ${kindOf(origin)}`;
  const url = URL.parse(origin);
  if (url === null || !webProtocol.test(url.protocol)) return `${wanted}, not ${JSON.stringify(origin)}`;
  if (url.origin !== origin) return `${wanted}, not ${JSON.stringify(origin)}; did you mean "${url.origin}"?`;
  const isLoopback = loopbackName.test(url.hostname);
  if (url.protocol === 'http:' && !isLoopback) {
    return `${JSON.stringify(origin)} must be https: on the way, others could change a page that is not`;
  }
  return undefined;
}
