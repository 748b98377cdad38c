/** A text as a QR code, made in the page: a secret of a second factor must not be sent anywhere to be drawn. */
import type { JSX } from 'preact';
import encodeQr from 'qr';

export function QrCode({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const rows = encodeQr(text, 'raw', { border: 4, ecc: 'medium' });
  const path = rows
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`}>
      <rect width={rows.length} height={rows.length} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
