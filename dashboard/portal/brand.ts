/**
 * The name and the colour of the operator, from the `meta` element of the page. The server has checked that the colour contrasts with
 * white; in dark mode links get a lighter one of the same hue, which contrasts with the dark ground.
 */

type Brand = { readonly name: string; readonly color: string | null; readonly base: string };

export const brand: Brand = JSON.parse(
  document.querySelector<HTMLMetaElement>('meta[name="portal"]')?.content ?? '{}',
);

/** By the object model of styles, which the policy of the page permits. */
export function applyBrand(): void {
  if (brand.color === null) return;
  const { style } = document.documentElement;
  style.setProperty('--accent', `light-dark(${brand.color}, ${lightened(brand.color)})`);
  style.setProperty('--on-accent', 'light-dark(#ffffff, #06121e)');
}

/** The relative luminance (WCAG 2.2) that has 7:1 with the dark ground `#0f141a` and with the dark text on a button. */
const luminanceMin = 0.35;

function lightened(color: string): string {
  const channels = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  for (let part = 0; part <= 1; part += 0.05) {
    const lighter = channels.map((channel) => Math.round(channel + (255 - channel) * part));
    if (luminance(lighter) >= luminanceMin) return `rgb(${lighter.join(' ')})`;
  }
  return '#ffffff';
}

function luminance(channels: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = channels.map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
